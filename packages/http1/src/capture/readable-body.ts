// What was kept of a body, as text for people: unpacked, decoded, without its secrets. Off the hot path, and off the event loop
// where it is work.
import { promisify } from 'node:util';
import { brotliDecompress, constants, gunzip, inflate } from 'node:zlib';
import { isTextual, redactBody, redactJson } from '../redact.ts';

export interface StoredBody {
  /** One character per byte. */
  readonly kept: string;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
}

export interface BodyBounds {
  /** Of the text that is shown. */
  readonly shownBytes: number;
  /** A body that grows beyond this when it is unpacked is not shown at all. */
  readonly unpackedBytes: number;
}

type Unpack = (bytes: Buffer, maxOutputLength: number) => Promise<Buffer>;

// Without the flush a body of which only the beginning was kept would be an error.
const gunzipped: Unpack = (bytes, maxOutputLength) =>
  promisify(gunzip)(bytes, { maxOutputLength, finishFlush: constants.Z_SYNC_FLUSH });

const UNPACKERS: ReadonlyMap<string, Unpack> = new Map([
  ['identity', (bytes) => Promise.resolve(bytes)],
  ['gzip', gunzipped],
  ['x-gzip', gunzipped],
  [
    'deflate',
    (bytes, maxOutputLength) => promisify(inflate)(bytes, { maxOutputLength, finishFlush: constants.Z_SYNC_FLUSH }),
  ],
  [
    'br',
    (bytes, maxOutputLength) =>
      promisify(brotliDecompress)(bytes, { maxOutputLength, finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  ],
]);

/** null: nothing is kept of it, or it is not text. */
export const readableBody = async (body: StoredBody, bounds: BodyBounds): Promise<string | null> => {
  const text = await decodedBody(body, bounds);
  return text === null ? null : withoutSecrets(body.contentType, text);
};

export const withoutSecrets = (contentType: string | null, text: string): string =>
  redactJson(contentType, redactBody(contentType, text));

/** As readableBody, secrets included: not to be shown. */
export const decodedBody = async (
  { kept, contentType, contentEncoding }: StoredBody,
  { shownBytes, unpackedBytes }: BodyBounds,
): Promise<string | null> => {
  if (kept === '' || !isTextual(contentType)) return null;
  const unpack = UNPACKERS.get((contentEncoding ?? 'identity').trim().toLowerCase());
  if (unpack === undefined) return null;
  try {
    const bytes = await unpack(Buffer.from(kept, 'latin1'), unpackedBytes);
    return decode(bytes.subarray(0, shownBytes), contentType);
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

const decoderFor = (charset: string) => {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
};
