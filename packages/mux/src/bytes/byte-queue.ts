// Byte queue that copies into blocks of growing size. A flood of one-byte chunks costs one byte per chunk instead of an object per chunk.

const FIRST_BLOCK_BYTES = 4 * 1024;
const LARGEST_BLOCK_BYTES = 64 * 1024;
/** Maximum number of free blocks kept for reuse: enough for a busy stream. Further blocks are left to the garbage collector. */
const KEPT_FREE = 64;

/** Memory block in a byte queue. Its bytes from `start` to `end` (exclusive) are still queued. */
export interface QueueBlock {
  readonly bytes: Buffer;
  start: number;
  end: number;
}

/**
 * Empty blocks of the largest size, kept for reuse. Without reuse, bulk data to a slow reader would allocate constantly, and Node.js 24 and
 * later would mark the whole heap many times per second.
 */
const freeBlocks: QueueBlock[] = [];

export class ByteQueue {
  #blocks: QueueBlock[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

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

  /** Removes at most `limit` bytes from the head. The caller owns the returned bytes; the queue never overwrites them. */
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

  /** Removes the whole first block. The caller returns the block with giveBackBlock() after use. */
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

/** Returns a block for reuse. Call only once per block, and only after the last read of its bytes, including reads by the kernel. */
export const giveBackBlock = (block: QueueBlock): void => {
  if (block.bytes.length !== LARGEST_BLOCK_BYTES || freeBlocks.length >= KEPT_FREE) return;
  block.start = 0;
  block.end = 0;
  freeBlocks.push(block);
};

const EMPTY = Buffer.alloc(0);
