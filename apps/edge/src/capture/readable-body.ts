// What was kept of a body, as text: unpacked, decoded, without its secrets. Off the hot path, and off the event loop where it is work.
import { promisify, TextDecoder } from 'node:util';
import { brotliDecompress, constants, gunzip, inflate } from 'node:zlib';
import { isTextual, redactBody, redactJson } from '@tunnel/core';
import { EDGE_LIMITS } from '../limits.ts';

const maxOutputLength = EDGE_LIMITS.CAPTURE_UNPACKED_MAX_BYTES;
// Without the sync flush a body of which only the beginning was kept would be an error.
const zlibOptions = { maxOutputLength, finishFlush: constants.Z_SYNC_FLUSH };
const brotliOptions = { maxOutputLength, finishFlush: constants.BROTLI_OPERATION_FLUSH };

const UNPACKERS: Readonly<Record<string, (bytes: Buffer) => Promise<Buffer>>> = {
  gzip: (bytes) => promisify(gunzip)(bytes, zlibOptions),
  'x-gzip': (bytes) => promisify(gunzip)(bytes, zlibOptions),
  deflate: (bytes) => promisify(inflate)(bytes, zlibOptions),
  br: (bytes) => promisify(brotliDecompress)(bytes, brotliOptions),
  identity: (bytes) => Promise.resolve(bytes),
};

export interface StoredBody {
  /** One character per byte. */
  readonly kept: string;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
}

/** null: nothing is kept of it, or it is not text. */
export const readableBody = async ({ kept, contentType, contentEncoding }: StoredBody): Promise<string | null> => {
  if (kept === '' || !isTextual(contentType)) return null;
  const unpack = UNPACKERS[contentEncoding?.trim().toLowerCase() ?? 'identity'];
  if (unpack === undefined) return null;
  try {
    const bytes = await unpack(Buffer.from(kept, 'latin1'));
    const text = decode(bytes.subarray(0, EDGE_LIMITS.CAPTURE_BODY_MAX_BYTES), contentType);
    return redactJson(contentType, redactBody(contentType, text));
  } catch {
    // Not what its head says it is, or a bomb.
    return null;
  }
};

const decode = (bytes: Buffer, contentType: string | null): string => {
  const charset = /;\s*charset="?([^";\s]+)/i.exec(contentType ?? '')?.[1] ?? 'utf-8';
  // As a stream: a character that was cut in half at the end is left out.
  return decoderFor(charset).decode(bytes, { stream: true });
};

const decoderFor = (charset: string): TextDecoder => {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
};
