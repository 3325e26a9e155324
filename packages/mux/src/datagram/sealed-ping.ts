// Bodies of PING and PONG: 8 random bytes that are echoed, and in the PONG the address and port seen by the receiver. Both have the same
// size, so that an answer is never larger than its request.

const TOKEN_BYTES = 8;
const ADDRESS_AT = TOKEN_BYTES;
const PORT_AT = ADDRESS_AT + 16;
export const PING_BODY_BYTES = PORT_AT + 2;

export interface Pong {
  readonly token: Buffer;
  /** Source address of the PING as seen by its receiver, returned in the PONG. */
  readonly address: string;
  readonly port: number;
}

/** Encodes a PING, padded with zeros to the size of its PONG. */
export const encodePing = (token: Buffer): Buffer => {
  const body = Buffer.alloc(PING_BODY_BYTES);
  token.copy(body, 0, 0, TOKEN_BYTES);
  return body;
};

/** Returns the token, or null if the size is wrong. The padding is ignored. */
export const decodePing = (body: Buffer): Buffer | null =>
  body.length === PING_BODY_BYTES ? body.subarray(0, TOKEN_BYTES) : null;

/** Encodes a PONG. Returns null if the address cannot be encoded. */
export const encodePong = (token: Buffer, address: string, port: number): Buffer | null => {
  const body = Buffer.alloc(PING_BODY_BYTES);
  token.copy(body, 0, 0, TOKEN_BYTES);
  if (!writeAddress(address, body)) return null;
  body.writeUInt16BE(port, PORT_AT);
  return body;
};

/** Decodes a PONG. Returns null if the size is wrong or the port is 0. */
export const decodePong = (body: Buffer): Pong | null => {
  if (body.length !== PING_BODY_BYTES) return null;
  const port = body.readUInt16BE(PORT_AT);
  return port === 0 ? null : { token: body.subarray(0, TOKEN_BYTES), address: readAddress(body), port };
};

// ---- addresses, 16 bytes each: IPv4 as the IPv6 address that carries it (::ffff:0:0/96) ----

const MAPPED = Buffer.from('00000000000000000000ffff', 'hex');

const readAddress = (body: Buffer): string => {
  if (body.compare(MAPPED, 0, 12, ADDRESS_AT, ADDRESS_AT + 12) === 0)
    return body.subarray(ADDRESS_AT + 12, PORT_AT).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => body.readUInt16BE(ADDRESS_AT + 2 * i).toString(16));
  // Formats like Node.js: the longest run of two or more zero groups is omitted.
  const [run = ''] = [...groups.join(':').matchAll(/\b0(?::0)+\b/g)]
    .map(([zeros]) => zeros)
    .sort((a, b) => b.length - a.length);
  const text = groups.join(':');
  return run === '' ? text : text.replace(new RegExp(`(?:^|:)${run}(?::|$)`), '::');
};

/** Encodes an address as formatted by Node.js: dotted IPv4 only if mapped, with an optional zone behind `%`. */
const writeAddress = (text: string, body: Buffer): boolean => {
  const plain = text.split('%', 1)[0] as string;
  const v4 = /^(?:::ffff:)?(\d+)\.(\d+)\.(\d+)\.(\d+)$/i.exec(plain);
  if (v4 !== null) {
    MAPPED.copy(body, ADDRESS_AT);
    for (let i = 0; i < 4; i += 1) body[ADDRESS_AT + 12 + i] = Number(v4[i + 1]);
    return true;
  }
  const [head = '', tail] = plain.split('::', 2);
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  if (!plain.includes(':') || before.length + after.length > 8) return false;
  const groups = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => '0'), ...after];
  for (let i = 0; i < 8; i += 1)
    body.writeUInt16BE(Number.parseInt(groups[i] as string, 16) & 0xffff, ADDRESS_AT + 2 * i);
  return true;
};
