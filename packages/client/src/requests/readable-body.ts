// What was kept of a body, as text for people: unpacked, decoded, without its secrets. null: it is no text.
import { promisify } from 'node:util';
import { brotliDecompress, constants, gunzip, inflate } from 'node:zlib';
import { fieldValueOf, type HeaderField, REDACTED, redactBody } from '@tunnel/core';
import { LIMITS } from '@tunnel/protocol';

const TEXTUAL =
  /^(?:text\/|application\/(?:json|xml|javascript|ecmascript|x-javascript|x-www-form-urlencoded|graphql|ndjson|x-ndjson|json-seq|yaml|x-yaml|toml|sql)\b|(?:application|image|model|message)\/[^;\s]+\+(?:json|xml|yaml)\b)/i;

/** By what the message says of itself. */
export const isTextual = (headers: readonly HeaderField[]): boolean =>
  TEXTUAL.test(fieldValueOf(headers, 'content-type') ?? '');

const maxOutputLength = 8 * LIMITS.INSPECTOR_BODY_MAX_BYTES;
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
  if (!isTextual(headers) || unpack === undefined) return null;
  const contentType = fieldValueOf(headers, 'content-type');
  try {
    const bytes = await unpack(kept);
    const text = decode(bytes.subarray(0, LIMITS.INSPECTOR_BODY_MAX_BYTES), contentType ?? '');
    return redactJson(contentType ?? '', redactBody(contentType, text));
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

/** Narrower than for forms: `code` and `key` alone are ordinary words of an API's JSON. */
const SECRET_MEMBER = /token|secret|passw(?:or)?d|passphrase|(?:api|private|access)[_-]?key|authorization/i;

// Names are bounded: without that, a text of nothing but quotes would take the square of its length. A value may be cut off.
const MEMBER = /("((?:[^"\\]|\\.){1,100})"\s*:\s*)("(?:[^"\\]|\\.)*(?:"|\\?$)|\[[^[\]]*(?:\]|$)|[^\s"[\]{},]+)/g;

const redactJson = (contentType: string, text: string): string => {
  if (!/json|graphql/i.test(contentType)) return text;
  return text.replace(MEMBER, (whole, lead: string, name: string) =>
    SECRET_MEMBER.test(unescaped(name)) ? `${lead}"${REDACTED}"` : whole,
  );
};

/** `"to\u006ben"` is `token` to whoever reads the body. */
const unescaped = (name: string): string =>
  name.replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
