// The bytes of bulk streams: a long repeating pattern that is sent without copying and compared with memcmp, so that load and origin stay
// cheaper than the measured programs. The period is a prime near 256 KiB, so that a block that is lost, duplicated or moved by a power of
// two no longer matches.

const PERIOD = 262_139;
const LONGEST_PIECE = 512 * 1024;
const WRITE_BYTES = 256 * 1024;

const pattern = makePattern();

function makePattern() {
  const bytes = Buffer.allocUnsafeSlow(PERIOD + LONGEST_PIECE);
  let state = 0x9e3779b9;
  for (let at = 0; at < PERIOD; at++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[at] = state;
  }
  for (let at = PERIOD; at < bytes.length; at += PERIOD) bytes.copy(bytes, at, 0, Math.min(PERIOD, bytes.length - at));
  return bytes;
}

/** Returns a piece for small messages that depends on `offset`. */
export const patternPiece = (offset, length) =>
  Buffer.from(pattern.subarray(offset % PERIOD, (offset % PERIOD) + length));

/**
 * Writes `bytes` of the pattern as fast as the socket accepts them, then calls `onSent`. Returns an object with the number of bytes sent
 * so far.
 * Writes once per event loop turn, because a kernel that accepts everything must not block other connections of this process.
 */
export function sendPattern(socket, offset, bytes, onSent) {
  const sending = { sent: 0 };
  const pump = () => {
    if (socket.destroyed) return;
    if (sending.sent >= bytes) return onSent();
    const from = (offset + sending.sent) % PERIOD;
    const length = Math.min(WRITE_BYTES, bytes - sending.sent);
    sending.sent += length;
    socket.write(pattern.subarray(from, from + length), () => setImmediate(pump));
    return undefined;
  };
  pump();
  return sending;
}

/** Compares received bytes with the pattern. */
export class PatternCheck {
  bytes = 0;
  right = true;
  #offset;

  constructor(offset) {
    this.#offset = offset;
  }

  take(chunk, length) {
    for (let at = 0; at < length; at += LONGEST_PIECE) {
      const end = Math.min(length, at + LONGEST_PIECE);
      const from = (this.#offset + this.bytes) % PERIOD;
      if (chunk.compare(pattern, from, from + end - at, at, end) !== 0) this.right = false;
      this.bytes += end - at;
    }
  }
}
