import { RULE_LIMITS } from '@tunnel/rules/limits';
// What a visitor of a port with TLS says first, read before anything is done with it: whom it wants (SNI) and what it speaks (ALPN). Bytes in, a verdict
// out; every length is checked against what is there, and nothing is kept. The handshake itself, and every judgement beyond that, is OpenSSL's.

export interface ClientHello {
  /** A host name, folded and without its last dot; null: none that can be one. */
  readonly sni: string | null;
  /** In the visitor's order; empty: it offers none. */
  readonly alpn: readonly string[];
}

export type HelloReading =
  /** Not whole yet. With fewer than `atLeast` bytes, all told, the verdict is the same: nobody needs to ask. */
  | { readonly kind: 'more'; readonly atLeast: number }
  | { readonly kind: 'hello'; readonly hello: ClientHello }
  /** No TLS, broken, or longer than anybody's. */
  | { readonly kind: 'bad' };

const BAD: HelloReading = { kind: 'bad' };

const RECORD_HEADER_BYTES = 5;
const HANDSHAKE_RECORD = 22;
const RECORD_MAX_BYTES = 16_384;
const MESSAGE_HEADER_BYTES = 4;
const CLIENT_HELLO = 1;
/** Of the record and of the hello: SSL 3 and every TLS. */
const MAJOR_VERSION = 3;
const RANDOM_BYTES = 32;
const SESSION_ID_MAX_BYTES = 32;
const SERVER_NAME = 0;
const ALPN = 16;

/** `bytes`: all that came so far, from the first on. What follows the hello is not looked at. */
export const readClientHello = (bytes: Buffer): HelloReading => {
  const pieces: Buffer[] = [];
  /** Of the message, in the records that were walked. */
  let had = 0;
  /** Of its header alone, until that is whole. */
  let needed = MESSAGE_HEADER_BYTES;
  let isSized = false;
  for (let at = 0; ; ) {
    if (!mayBeRecord(bytes, at)) return BAD;
    const start = at + RECORD_HEADER_BYTES;
    if (bytes.length < start) return more(start);
    const length = bytes.readUInt16BE(at + 3);
    // An empty one is forbidden; without that a hello could be any number of records.
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
      // As if it had come in pieces: where it ends, headers of records included.
      const end = start + piece.length - (had - needed);
      return end > RULE_LIMITS.TLS_HELLO_MAX_BYTES ? BAD : readMessage(joined(pieces, had), needed);
    }
    // The rest of this record, or as much of it as the message can need.
    if (piece.length < length) return more(bytes.length + Math.min(length - piece.length, needed - had));
    at = start + length;
  }
};

const more = (atLeast: number): HelloReading =>
  atLeast > RULE_LIMITS.TLS_HELLO_MAX_BYTES ? BAD : { kind: 'more', atLeast };

/** By as much of its header as is there: plain HTTP is told by its first byte. */
const mayBeRecord = (bytes: Buffer, at: number): boolean =>
  (bytes.length <= at || bytes[at] === HANDSHAKE_RECORD) && (bytes.length <= at + 1 || bytes[at + 1] === MAJOR_VERSION);

/** Nearly always it is one, and stays where it is. */
const joined = (pieces: readonly Buffer[], length: number): Buffer =>
  pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, length);

const readMessage = (bytes: Buffer, end: number): HelloReading => {
  const extensionsAt = skipToExtensions(bytes, end);
  if (extensionsAt === null) return BAD;
  // TLS 1.2 may go without.
  if (extensionsAt === end) return { kind: 'hello', hello: { sni: null, alpn: [] } };
  const hello = readExtensions(bytes, extensionsAt, end);
  return hello === null ? BAD : { kind: 'hello', hello };
};

/** null: it is broken. */
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
    // Which of two would the handshake take?
    if (alpn !== null) return null;
    alpn = readProtocols(bytes, start, at);
    if (alpn === null) return null;
  }
  // Whoever names several hosts names none.
  return { sni: names.length === 1 ? (names[0] as string | null) : null, alpn: alpn ?? [] };
};

/** false: it is broken. */
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

/** As certificates and tunnels are looked up: small letters, no last dot. null: no host name, or an address. */
export const foldHost = (name: string): string | null => {
  const host = (name.endsWith('.') ? name.slice(0, -1) : name).toLowerCase();
  if (host.length > HOST_MAX_CHARS) return null;
  const labels = host.split('.');
  // No name ends in a number; every IPv4 address does, and one of IPv6 has colons.
  return labels.every((label) => LABEL.test(label)) && !DIGITS.test(labels.at(-1) as string) ? host : null;
};
