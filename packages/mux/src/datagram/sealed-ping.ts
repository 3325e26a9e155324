// The bodies of PING and PONG: 8 random bytes that come back, and with them the address and port that the answerer saw. Both have one size,
// so that no answer is larger than its question.

const TOKEN_BYTES = 8;
const ADDRESS_AT = TOKEN_BYTES;
const PORT_AT = ADDRESS_AT + 16;
export const PING_BODY_BYTES = PORT_AT + 2;

export interface Pong {
  readonly token: Buffer;
  /** Where the PING came from, as its receiver saw it. */
  readonly address: string;
  readonly port: number;
}

/** The rest is zero: a PING is padded to the size of its PONG. */
export const encodePing = (token: Buffer): Buffer => {
  const body = Buffer.alloc(PING_BODY_BYTES);
  token.copy(body, 0, 0, TOKEN_BYTES);
  return body;
};

/** The token; null: not of the size of a PING. What stands in the padding is passed over. */
export const decodePing = (body: Buffer): Buffer | null =>
  body.length === PING_BODY_BYTES ? body.subarray(0, TOKEN_BYTES) : null;

/** null: no address that can be told. */
export const encodePong = (token: Buffer, address: string, port: number): Buffer | null => {
  const body = Buffer.alloc(PING_BODY_BYTES);
  token.copy(body, 0, 0, TOKEN_BYTES);
  if (!writeAddress(address, body)) return null;
  body.writeUInt16BE(port, PORT_AT);
  return body;
};

/** null: not of the size of one, or without a port. */
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
  // The way node writes them: the longest run of zeros, two or more, is left out.
  const [run = ''] = [...groups.join(':').matchAll(/\b0(?::0)+\b/g)]
    .map(([zeros]) => zeros)
    .sort((a, b) => b.length - a.length);
  const text = groups.join(':');
  return run === '' ? text : text.replace(new RegExp(`(?:^|:)${run}(?::|$)`), '::');
};

/** `text` as node gives it: no IPv4 inside of an IPv6 address but a mapped one, a zone behind `%`. */
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
