// Bytes that wait, copied into blocks that grow with use: a flood of one-byte pieces costs one byte each, not one object each.

const FIRST_BLOCK_BYTES = 4 * 1024;
const LARGEST_BLOCK_BYTES = 64 * 1024;

interface Block {
  readonly bytes: Buffer;
  start: number;
  end: number;
}

export class ByteQueue {
  #blocks: Block[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Copies bytes[start, end) to the tail. */
  push(bytes: Uint8Array, start: number, end: number): void {
    let at = start;
    while (at < end) {
      const tail = this.#tail(end - at);
      const taken = Math.min(end - at, tail.bytes.length - tail.end);
      tail.bytes.set(bytes.subarray(at, at + taken), tail.end);
      tail.end += taken;
      at += taken;
    }
    this.#length += end - start;
  }

  /** Hands out at most `limit` bytes of the head; the caller owns them: they are never written again. */
  shift(limit: number): Buffer {
    const head = this.#blocks[0];
    if (head === undefined) return EMPTY;
    const taken = Math.min(limit, head.end - head.start);
    const bytes = head.bytes.subarray(head.start, head.start + taken);
    head.start += taken;
    this.#length -= taken;
    if (head.start === head.end) this.#blocks.shift();
    return bytes;
  }

  clear(): void {
    this.#blocks = [];
    this.#length = 0;
  }

  #tail(wanted: number): Block {
    const last = this.#blocks.at(-1);
    if (last !== undefined && last.end < last.bytes.length) return last;
    const grown = last === undefined ? FIRST_BLOCK_BYTES : last.bytes.length * 2;
    const size = Math.min(LARGEST_BLOCK_BYTES, Math.max(grown, wanted));
    const block = { bytes: Buffer.allocUnsafeSlow(size), start: 0, end: 0 };
    this.#blocks.push(block);
    return block;
  }
}

const EMPTY = Buffer.alloc(0);
