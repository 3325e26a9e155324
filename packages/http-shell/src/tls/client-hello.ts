import { RULE_LIMITS } from '@tunnel/rules/limits';
// Parses the first message of a TLS visitor, before any work is done: requested host (SNI) and protocols (ALPN). Checks every length
// against the available bytes, and stores nothing. The handshake and all further checks are left to OpenSSL.

export interface ClientHello {
  /** Requested host name in lower case without the final dot. Null if the hello has no valid host name. */
  readonly sni: string | null;
  /** Offered protocols in the visitor's order. Empty if the hello has no ALPN. */
  readonly alpn: readonly string[];
}

export type HelloReading =
  /** The hello is incomplete. With fewer than `atLeast` bytes in total, the result would be the same, so another call is not necessary. */
  | { readonly kind: 'more'; readonly atLeast: number }
  | { readonly kind: 'hello'; readonly hello: ClientHello }
  /** The bytes are not TLS, are malformed, or exceed the maximum size of a hello. */
  | { readonly kind: 'bad' };

const BAD: HelloReading = { kind: 'bad' };

const RECORD_HEADER_BYTES = 5;
const HANDSHAKE_RECORD = 22;
const RECORD_MAX_BYTES = 16_384;
const MESSAGE_HEADER_BYTES = 4;
const CLIENT_HELLO = 1;
/** Major version in the headers of record and hello: 3 for SSL 3 and every version of TLS. */
const MAJOR_VERSION = 3;
const RANDOM_BYTES = 32;
const SESSION_ID_MAX_BYTES = 32;
const SERVER_NAME = 0;
const ALPN = 16;

/** Parses a ClientHello. `bytes` are all bytes received so far; bytes after the hello are ignored. */
export const readClientHello = (bytes: Buffer): HelloReading => {
  const pieces: Buffer[] = [];
  /** Number of bytes of the message in the records read so far. */
  let had = 0;
  /** Size of the message, or of its header while the header is incomplete. */
  let needed = MESSAGE_HEADER_BYTES;
  let isSized = false;
  for (let at = 0; ; ) {
    if (!mayBeRecord(bytes, at)) return BAD;
    const start = at + RECORD_HEADER_BYTES;
    if (bytes.length < start) return more(start);
    const length = bytes.readUInt16BE(at + 3);
    // Empty records are forbidden. Without this check, a hello could consist of any number of records.
    if (length === 0 || length > RECORD_MAX_BYTES) return BAD;
    const piece = bytes.subarray(start, start + length);
    if (had === 0 && piece.length > 0 && piece[0] !== CLIENT_HELLO) return BAD;
    pieces.push(piece);
    had += piece.length;
    if (!isSized && had >= needed) {
      isSized = true;
      needed += joined(pieces, had).readUIntBE(1, 3);
      if (needed > RULE_LIMITS.TLS_HELLO_MAX_BYTES) return BAD;
    }
    if (isSized && had >= needed) {
      // Apply the size limit to the hello including its record headers, as for a hello that arrives in pieces.
      const end = start + piece.length - (had - needed);
      return end > RULE_LIMITS.TLS_HELLO_MAX_BYTES ? BAD : readMessage(joined(pieces, had), needed);
    }
    // Wait for the rest of this record, or for the part of it that the message needs.
    if (piece.length < length) return more(bytes.length + Math.min(length - piece.length, needed - had));
    at = start + length;
  }
};

const more = (atLeast: number): HelloReading =>
  atLeast > RULE_LIMITS.TLS_HELLO_MAX_BYTES ? BAD : { kind: 'more', atLeast };

/** Returns false if the available bytes cannot be a record header. Plain HTTP is recognized by its first byte. */
const mayBeRecord = (bytes: Buffer, at: number): boolean =>
  (bytes.length <= at || bytes[at] === HANDSHAKE_RECORD) && (bytes.length <= at + 1 || bytes[at + 1] === MAJOR_VERSION);

/** Joins the pieces of a message. Almost always there is a single piece, which is not copied. */
const joined = (pieces: readonly Buffer[], length: number): Buffer =>
  pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, length);

const readMessage = (bytes: Buffer, end: number): HelloReading => {
  const extensionsAt = skipToExtensions(bytes, end);
  if (extensionsAt === null) return BAD;
  // A TLS 1.2 hello can have no extensions.
  if (extensionsAt === end) return { kind: 'hello', hello: { sni: null, alpn: [] } };
  const hello = readExtensions(bytes, extensionsAt, end);
  return hello === null ? BAD : { kind: 'hello', hello };
};

/** Returns the position of the extensions, or null if the hello is malformed. */
const skipToExtensions = (bytes: Buffer, end: number): number | null => {
  let at = MESSAGE_HEADER_BYTES + 2 + RANDOM_BYTES;
  if (at + 1 > end || bytes[MESSAGE_HEADER_BYTES] !== MAJOR_VERSION) return null;
  const sessionId = bytes[at] as number;
  at += 1 + sessionId;
  if (sessionId > SESSION_ID_MAX_BYTES || at + 2 > end) return null;
  const suites = bytes.readUInt16BE(at);
  at += 2 + suites;
  if (suites === 0 || suites % 2 !== 0 || at + 1 > end) return null;
  const compressions = bytes[at] as number;
  at += 1 + compressions;
  return compressions === 0 || at > end ? null : at;
};

const readExtensions = (bytes: Buffer, from: number, end: number): ClientHello | null => {
  let at = from + 2;
  if (at > end || bytes.readUInt16BE(from) !== end - at) return null;
  const names: (string | null)[] = [];
  let alpn: readonly string[] | null = null;
  while (at < end) {
    if (at + 4 > end) return null;
    const type = bytes.readUInt16BE(at);
    const start = at + 4;
    at = start + bytes.readUInt16BE(at + 2);
    if (at > end) return null;
    if (type === SERVER_NAME && !readServerNames(bytes, start, at, names)) return null;
    if (type !== ALPN) continue;
    // Reject a second ALPN extension, because it is unknown which one the handshake would use.
    if (alpn !== null) return null;
    alpn = readProtocols(bytes, start, at);
    if (alpn === null) return null;
  }
  // A hello with several host names counts as a hello without a name.
  return { sni: names.length === 1 ? (names[0] as string | null) : null, alpn: alpn ?? [] };
};

/** Adds the host names of the extension to `names`. Returns false if the extension is malformed. */
const readServerNames = (bytes: Buffer, from: number, end: number, names: (string | null)[]): boolean => {
  let at = from + 2;
  if (at >= end || bytes.readUInt16BE(from) !== end - at) return false;
  while (at < end) {
    if (at + 3 > end) return false;
    const isHost = bytes[at] === 0;
    const start = at + 3;
    at = start + bytes.readUInt16BE(at + 1);
    if (at > end) return false;
    if (isHost) names.push(foldHost(bytes.toString('latin1', start, at)));
  }
  return true;
};

const readProtocols = (bytes: Buffer, from: number, end: number): readonly string[] | null => {
  let at = from + 2;
  if (at >= end || bytes.readUInt16BE(from) !== end - at) return null;
  const names: string[] = [];
  while (at < end) {
    const start = at + 1;
    at = start + (bytes[at] as number);
    if (at === start || at > end) return null;
    names.push(bytes.toString('latin1', start, at));
  }
  return names;
};

const HOST_MAX_CHARS = 253;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const DIGITS = /^\d+$/;

/**
 * Normalizes a host name for looking up certificates and tunnels: lower case, without the final dot. Returns null for an IP address and
 * for any text that is not a host name.
 */
export const foldHost = (name: string): string | null => {
  const host = (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase();
  if (host.length > HOST_MAX_CHARS) return null;
  const labels = host.split('.');
  // No host name ends in a number, but every IPv4 address does; IPv6 addresses contain colons, which no label allows.
  return labels.every((label) => LABEL.test(label)) && !DIGITS.test(labels.at(-1) as string) ? host : null;
};
