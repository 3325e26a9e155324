// The frames of all records that came in one read, laid one after another: what was cut up for the cipher leaves as one write again. A record
// that came alone is handed on where it lies.
import { type CarrierReceiver, MUX_LIMITS } from '@tunnel/mux';

/** What one read of a busy carrier brings. */
const BLOCK_BYTES = MUX_LIMITS.SOCKET_BULK_BUFFER_BYTES;
const KEPT_FREE_BLOCKS = 4;

/** Of the whole process: a carrier has one only while it opens what a read has brought. */
const freeBlocks: Buffer[] = [];

export class OpenedFrames {
  /** The first record, in memory of its own; a block only when a second one comes. */
  #first: Buffer | null = null;
  #block: Buffer | null = null;
  #start = 0;
  #end = 0;

  /** plain[start, …) are frames, in memory that nobody else writes to. */
  add(plain: Buffer, start: number, receiver: CarrierReceiver): void {
    if (this.#end - this.#start + plain.length - start > BLOCK_BYTES) this.handOn(receiver);
    const first = this.#first;
    if (first === null && this.#block === null) {
      this.#first = plain;
      this.#start = start;
      this.#end = plain.length;
      return;
    }
    if (first !== null) {
      this.#block = freeBlocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#end = first.copy(this.#block, 0, this.#start, this.#end);
      this.#start = 0;
      this.#first = null;
    }
    this.#end += plain.copy(this.#block as Buffer, this.#end, start);
  }

  /** Memory that the receiver keeps a reference into is left to it. */
  handOn(receiver: CarrierReceiver): void {
    const block = this.#block;
    const bytes = block ?? this.#first;
    if (bytes === null) return;
    const start = this.#start;
    const end = this.#end;
    this.forget();
    const isKept = receiver.onBytes(bytes, start, end, true);
    if (block !== null && !isKept && freeBlocks.length < KEPT_FREE_BLOCKS) freeBlocks.push(block);
  }

  forget(): void {
    this.#first = null;
    this.#block = null;
    this.#start = 0;
    this.#end = 0;
  }
}
