// What was kept of a body, as text for people: unpacked, decoded, without its secrets. null: it is no text.
import { promisify } from 'node:util';
import { brotliDecompress, constants, gunzip, inflate } from 'node:zlib';
import { fieldValueOf, type HeaderField, isTextual, redactBody, redactJson } from '@tunnel/core';
import { CLIENT_LIMITS } from '../limits.ts';

const maxOutputLength = 8 * CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES;
// Without the flush a body of which only the beginning was kept would be an error.
const zlib = { maxOutputLength, finishFlush: constants.Z_SYNC_FLUSH };
const brotli = { maxOutputLength, finishFlush: constants.BROTLI_OPERATION_FLUSH };

const UNPACKERS: ReadonlyMap<string, (bytes: Buffer) => Promise<Buffer>> = new Map([
  ['identity', (bytes) => Promise.resolve(bytes)],
  ['gzip', (bytes) => promisify(gunzip)(bytes, zlib)],
  ['deflate', (bytes) => promisify(inflate)(bytes, zlib)],
  ['br', (bytes) => promisify(brotliDecompress)(bytes, brotli)],
]);

export const readableBody = async (headers: readonly HeaderField[], kept: Buffer): Promise<string | null> => {
  const unpack = UNPACKERS.get((fieldValueOf(headers, 'content-encoding') ?? 'identity').trim().toLowerCase());
  const contentType = fieldValueOf(headers, 'content-type');
  if (!isTextual(contentType) || unpack === undefined) return null;
  try {
    const bytes = await unpack(kept);
    const text = decode(bytes.subarray(0, CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES), contentType ?? '');
    return redactJson(contentType, redactBody(contentType, text));
  } catch {
    // Not what its head says it is, or a bomb.
    return null;
  }
};

/** As a stream: a character that was cut in half at the end is left out. */
const decode = (bytes: Buffer, contentType: string): string => {
  const charset = /;\s*charset="?([^";\s]+)/i.exec(contentType)?.[1] ?? 'utf-8';
  return decoderFor(charset).decode(bytes, { stream: true });
};

const decoderFor = (charset: string) => {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
};
