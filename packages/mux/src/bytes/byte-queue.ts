// Bytes that wait, copied into blocks that grow with use: a flood of one-byte pieces costs one byte each, not one object each.

const FIRST_BLOCK_BYTES = 4 * 1024;
const LARGEST_BLOCK_BYTES = 64 * 1024;
/** What is kept for the next queue: that of one busy stream; the rest goes back to the system. */
const KEPT_FREE = 64;

/** Bytes [start, end) of it wait. */
export interface QueueBlock {
  readonly bytes: Buffer;
  start: number;
  end: number;
}

/**
 * Large blocks whose bytes are gone. Without them bulk to a slow reader is new memory all the time, for which Node.js 24 and later mark the whole heap
 * many times a second.
 */
const freeBlocks: QueueBlock[] = [];

export class ByteQueue {
  #blocks: QueueBlock[] = [];
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

  /** Hands out the first block whole. Whoever is done with it gives it back. */
  shiftBlock(): QueueBlock | undefined {
    const block = this.#blocks.shift();
    if (block !== undefined) this.#length -= block.end - block.start;
    return block;
  }

  clear(): void {
    this.#blocks = [];
    this.#length = 0;
  }

  #tail(wanted: number): QueueBlock {
    const last = this.#blocks.at(-1);
    if (last !== undefined && last.end < last.bytes.length) return last;
    const grown = last === undefined ? FIRST_BLOCK_BYTES : last.bytes.length * 2;
    const size = Math.min(LARGEST_BLOCK_BYTES, Math.max(grown, wanted));
    const free = size === LARGEST_BLOCK_BYTES ? freeBlocks.pop() : undefined;
    const block = free ?? { bytes: Buffer.allocUnsafeSlow(size), start: 0, end: 0 };
    this.#blocks.push(block);
    return block;
  }
}

/** Once, and when nobody reads its bytes any more, the kernel included. */
export const giveBackBlock = (block: QueueBlock): void => {
  if (block.bytes.length !== LARGEST_BLOCK_BYTES || freeBlocks.length >= KEPT_FREE) return;
  block.start = 0;
  block.end = 0;
  freeBlocks.push(block);
};

const EMPTY = Buffer.alloc(0);
