// The large read buffers that busy sockets and carriers borrow. Everyone else reads into one shared scratch buffer,
// so that an idle connection holds no buffer at all. Each block has head room for a frame header in front.

import { MUX_LIMITS } from '../limits.ts';
import { HEAD_ROOM_BYTES } from './byte-duplex.ts';

/** own buffers at once; further sockets share */
export const SOCKET_BULK_BUFFERS_MAX = 128;

/** What is kept for the next borrower; the rest goes back to the system. */
const KEPT_FREE = 16;

export interface ReadBlock {
  /** The whole, head room included. */
  readonly whole: Buffer;
  /** Where the kernel writes: the whole without its head room. */
  readonly view: Buffer;
  /** The front of it, for turns that have to be short. */
  readonly shortView: Buffer;
  /** How many streams let their readers use a part of it until they resume. */
  pins: number;
  /** Whoever borrowed it reads into another one by now: it is free with the last pin. */
  isLeft: boolean;
}

const blockOf = (size: number): ReadBlock => {
  const whole = Buffer.allocUnsafeSlow(HEAD_ROOM_BYTES + size);
  const view = whole.subarray(HEAD_ROOM_BYTES);
  return { whole, view, shortView: view.subarray(0, MUX_LIMITS.READ_TURN_SHARED_BYTES), pins: 0, isLeft: false };
};

/** Read into and emptied within one callback, hence one for the whole process. */
export const SCRATCH: ReadBlock = blockOf(MUX_LIMITS.SOCKET_SCRATCH_BYTES);

class ReadBuffers {
  /** Whose bytes are being handed on in this very call. */
  handing: ReadBlock | null = null;
  #free: ReadBlock[] = [];
  #borrowed = 0;

  get borrowed(): number {
    return this.#borrowed;
  }

  /** null when the bound is reached: the caller stays with the scratch buffer and its copies. */
  borrow(): ReadBlock | null {
    if (this.#borrowed >= SOCKET_BULK_BUFFERS_MAX) return null;
    this.#borrowed += 1;
    return this.#free.pop() ?? blockOf(MUX_LIMITS.SOCKET_BULK_BUFFER_BYTES);
  }

  /** `reusable` is false while somebody unknown may still hold a reference: such a block is left to the garbage collector. */
  giveBack(block: ReadBlock, reusable: boolean): void {
    this.#borrowed -= 1;
    if (!reusable) return;
    if (block.pins > 0) block.isLeft = true;
    else this.#keep(block);
  }

  /** Keeps what is being handed on from being written over. null: `bytes` is other memory, as what was opened of a sealed carrier in between. */
  pin(bytes: Buffer): ReadBlock | null {
    if (this.handing === null || this.handing.view !== bytes) return null;
    this.handing.pins += 1;
    return this.handing;
  }

  /** Only when the part is surely not in use any more. A pin that is never taken off leaves its block to the garbage collector. */
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

/** Memory of its own for what somebody else will write over. */
export const copyOf = (bytes: Buffer, start: number, end: number): Buffer => {
  const copy = Buffer.allocUnsafe(end - start);
  bytes.copy(copy, 0, start, end);
  return copy;
};
