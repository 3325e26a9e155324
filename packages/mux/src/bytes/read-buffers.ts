// Large read buffers that busy sockets and carriers borrow. All other connections read into a shared scratch buffer, so that an idle
// connection holds no buffer. Every block starts with head room for a frame header.

import { MUX_LIMITS } from '../limits.ts';
import { HEAD_ROOM_BYTES } from './byte-duplex.ts';

/** Maximum number of large read buffers that busy sockets borrow at once. Further sockets read into the shared buffer. */
export const SOCKET_BULK_BUFFERS_MAX = 128;

/** Maximum number of free blocks kept for reuse. Further blocks are left to the garbage collector. */
const KEPT_FREE = 16;

export interface ReadBlock {
  /** The whole read block, including the head room for a frame header. */
  readonly whole: Buffer;
  /** Part of a read block that the kernel reads into: the block without the head room. */
  readonly view: Buffer;
  /** Front part of a read block's `view`, used for short reads while small messages pass through the process. */
  readonly shortView: Buffer;
  /** Number of streams with a reader that uses a part of the block until it resumes. */
  pins: number;
  /** True after the borrower has switched to another block. The block is free when the last pin is removed. */
  isLeft: boolean;
}

const blockOf = (size: number): ReadBlock => {
  const whole = Buffer.allocUnsafeSlow(HEAD_ROOM_BYTES + size);
  const view = whole.subarray(HEAD_ROOM_BYTES);
  return { whole, view, shortView: view.subarray(0, MUX_LIMITS.TICK_READ_SHARED_BYTES), pins: 0, isLeft: false };
};

/** Buffer for reads that are processed within the same callback. A single buffer is enough for the process. */
export const SCRATCH: ReadBlock = blockOf(MUX_LIMITS.SOCKET_SCRATCH_BYTES);

class ReadBuffers {
  /** Read block with the bytes of the onData call in progress. */
  handing: ReadBlock | null = null;
  #free: ReadBlock[] = [];
  #borrowed = 0;

  get borrowed(): number {
    return this.#borrowed;
  }

  /** Returns null if the limit is reached. The caller then keeps using the scratch buffer and copies. */
  borrow(): ReadBlock | null {
    if (this.#borrowed >= SOCKET_BULK_BUFFERS_MAX) return null;
    this.#borrowed += 1;
    return this.#free.pop() ?? blockOf(MUX_LIMITS.SOCKET_BULK_BUFFER_BYTES);
  }

  /**
   * Returns a borrowed block. Pass false for `reusable` while unknown code can hold a reference; the block is then left to the garbage
   * collector.
   */
  giveBack(block: ReadBlock, reusable: boolean): void {
    this.#borrowed -= 1;
    if (!reusable) return;
    if (block.pins > 0) block.isLeft = true;
    else this.#keep(block);
  }

  /**
   * Protects the block of the current onData call from being overwritten. Returns null if `bytes` is other memory, for example a decrypted
   * packet of a sealed carrier.
   */
  pin(bytes: Buffer): ReadBlock | null {
    if (this.handing === null || this.handing.view !== bytes) return null;
    this.handing.pins += 1;
    return this.handing;
  }

  /**
   * Removes a pin. Call only when the pinned bytes are certainly no longer in use. A block with a pin that is never removed is left to the
   * garbage collector.
   */
  unpin(block: ReadBlock): void {
    block.pins -= 1;
    if (block.pins > 0 || !block.isLeft) return;
    block.isLeft = false;
    this.#keep(block);
  }

  #keep(block: ReadBlock): void {
    if (this.#free.length < KEPT_FREE) this.#free.push(block);
  }
}

export const readBuffers = new ReadBuffers();

/** Copies bytes out of a read buffer that will be overwritten. */
export const copyOf = (bytes: Buffer, start: number, end: number): Buffer => {
  const copy = Buffer.allocUnsafe(end - start);
  bytes.copy(copy, 0, start, end);
  return copy;
};
