// The large read buffers that busy sockets and carriers borrow. Everyone else reads into one shared scratch buffer,
// so that an idle connection holds no buffer at all. Each block has head room for a frame header in front.

import { HEAD_ROOM_BYTES } from './byte-duplex.ts';
import { MUX_LIMITS } from './limits.ts';

/** What is kept for the next borrower; the rest goes back to the system. */
const KEPT_FREE = 16;

export interface ReadBlock {
  /** The whole, head room included. */
  readonly whole: Buffer;
  /** Where the kernel writes: the whole without its head room. */
  readonly view: Buffer;
  /** The front of it, for turns that have to be short. */
  readonly shortView: Buffer;
}

const blockOf = (size: number): ReadBlock => {
  const whole = Buffer.allocUnsafeSlow(HEAD_ROOM_BYTES + size);
  const view = whole.subarray(HEAD_ROOM_BYTES);
  return { whole, view, shortView: view.subarray(0, MUX_LIMITS.READ_TURN_SHARED_BYTES) };
};

/** Read into and emptied within one callback, hence one for the whole process. */
export const SCRATCH: ReadBlock = blockOf(MUX_LIMITS.SOCKET_SCRATCH_BYTES);

class ReadBuffers {
  #free: ReadBlock[] = [];
  #borrowed = 0;

  get borrowed(): number {
    return this.#borrowed;
  }

  /** null when the bound is reached: the caller stays with the scratch buffer and its copies. */
  borrow(): ReadBlock | null {
    if (this.#borrowed >= MUX_LIMITS.SOCKET_BULK_BUFFERS_MAX) return null;
    this.#borrowed += 1;
    return this.#free.pop() ?? blockOf(MUX_LIMITS.SOCKET_BULK_BUFFER_BYTES);
  }

  /** `reusable` is false while a write may still hold a reference: such a block is left to the garbage collector. */
  giveBack(block: ReadBlock, reusable: boolean): void {
    this.#borrowed -= 1;
    if (reusable && this.#free.length < KEPT_FREE) this.#free.push(block);
  }
}

export const readBuffers = new ReadBuffers();

/** Memory of its own for what somebody else will write over. */
export const copyOf = (bytes: Buffer, start: number, end: number): Buffer => {
  const copy = Buffer.allocUnsafe(end - start);
  bytes.copy(copy, 0, start, end);
  return copy;
};
