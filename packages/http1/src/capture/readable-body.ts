// Converts a stored body to text for users: unpacks, decodes, and hides secrets. Not on the hot path; expensive work runs off the event
// loop.
import { promisify } from 'node:util';
import { brotliDecompress, constants, gunzip, inflate } from 'node:zlib';
import { isTextual, redactBody, redactJson } from '../redact.ts';

export interface StoredBody {
  /** The stored part of the body, one character per byte. */
  readonly kept: string;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
}

export interface BodyBounds {
  /** Maximum size of the text shown, in bytes. */
  readonly shownBytes: number;
  /** Maximum size of a body after unpacking. A larger body is not shown at all. */
  readonly unpackedBytes: number;
}

type Unpack = (bytes: Buffer, maxOutputLength: number) => Promise<Buffer>;

// Z_SYNC_FLUSH allows truncated input: without it, a body of which only the beginning was stored would be an error.
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

/** Returns the stored body as text, or null if nothing was stored or the body is not text. */
export const readableBody = async (body: StoredBody, bounds: BodyBounds): Promise<string | null> => {
  const text = await decodedBody(body, bounds);
  return text === null ? null : withoutSecrets(body.contentType, text);
};

export const withoutSecrets = (contentType: string | null, text: string): string =>
  redactJson(contentType, redactBody(contentType, text));

/** Returns the same text as readableBody, but with secrets. Must not be shown to users. */
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
    // The body does not have the declared encoding, or exceeds the limit when unpacked.
    return null;
  }
};

const decode = (bytes: Buffer, contentType: string | null): string => {
  const charset = /;\s*charset="?([^";\s]+)/i.exec(contentType ?? '')?.[1] ?? 'utf-8';
  // Decode as a stream, so that an incomplete character at the end is omitted.
  return decoderFor(charset).decode(bytes, { stream: true });
};

const decoderFor = (charset: string) => {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
};
