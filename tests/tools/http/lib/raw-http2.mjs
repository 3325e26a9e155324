// Builds HTTP/2 frames by hand, including frames that a library would refuse to send. Header fields are literals without a table, so that
// names and values can be arbitrary bytes.

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
export const TYPE = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
};
export const END_STREAM = 1;
export const END_HEADERS = 4;
const ACK = 1;
const FRAME_MAX = 16_384;
const HEAD_BYTES = 9;

export const frame = (type, flags, streamId, payload = Buffer.alloc(0)) => {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId >>> 0, 5);
  return Buffer.concat([head, payload]);
};

/** Encodes an integer with a prefix of `bits` bits (RFC 7541, 5.1). */
const integer = (value, bits, first = 0) => {
  const max = 2 ** bits - 1;
  if (value < max) return Buffer.from([first | value]);
  const bytes = [first | max];
  let rest = value - max;
  while (rest >= 128) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from([...bytes, rest]);
};

const text = (value) => {
  const bytes = Buffer.from(value, 'latin1');
  return Buffer.concat([integer(bytes.length, 7), bytes]);
};

export const fieldBlock = (fields) =>
  Buffer.concat(fields.map(([name, value]) => Buffer.concat([Buffer.from([0]), text(name), text(value)])));

export const tableSize = (bytes) => integer(bytes, 5, 0x20);
export const indexed = (index) => integer(index, 7, 0x80);

/** Returns a HEADERS frame, with CONTINUATION frames for the part that does not fit. */
export const headFrames = (streamId, block, endsStream) => {
  const parts = [];
  for (let at = 0; at === 0 || at < block.length; at += FRAME_MAX) {
    const flags = (at + FRAME_MAX >= block.length ? END_HEADERS : 0) | (at === 0 && endsStream ? END_STREAM : 0);
    parts.push(frame(at === 0 ? TYPE.headers : TYPE.continuation, flags, streamId, block.subarray(at, at + FRAME_MAX)));
  }
  return Buffer.concat(parts);
};

/** Parses frames from chunks of any size, and acknowledges settings and pings. */
export class FrameReader {
  #socket;
  #onFrame;
  #rest = Buffer.alloc(0);

  constructor(socket, onFrame) {
    this.#socket = socket;
    this.#onFrame = onFrame;
  }

  take(bytes) {
    let rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (rest.length >= HEAD_BYTES) {
      const length = rest.readUIntBE(0, 3);
      if (rest.length < HEAD_BYTES + length) break;
      const type = rest[3];
      const flags = rest[4];
      const streamId = rest.readUInt32BE(5) & 0x7fffffff;
      const payload = rest.subarray(HEAD_BYTES, HEAD_BYTES + length);
      rest = rest.subarray(HEAD_BYTES + length);
      if (type === TYPE.settings && (flags & ACK) === 0) this.#socket.write(frame(TYPE.settings, ACK, 0));
      if (type === TYPE.ping && (flags & ACK) === 0) this.#socket.write(frame(TYPE.ping, ACK, 0, payload));
      this.#onFrame({ type, flags, streamId, payload });
    }
    this.#rest = rest;
  }
}
