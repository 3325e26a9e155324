// Collects the decrypted frames of all records in a read, so that frames split for the cipher are delivered in one call. A single record is
// delivered without a copy.
import { type CarrierReceiver, MUX_LIMITS } from '@tunnel/mux';

/** Size of a block for decrypted frames, equal to the read size of a busy carrier. */
const BLOCK_BYTES = MUX_LIMITS.SOCKET_BULK_BUFFER_BYTES;
const KEPT_FREE_BLOCKS = 4;

/** Free blocks, shared by all carriers. A carrier holds a block only while it decrypts a read. */
const freeBlocks: Buffer[] = [];

export class OpenedFrames {
  /** First record, in its original memory. Copied to a block only when a second record follows. */
  #first: Buffer | null = null;
  #block: Buffer | null = null;
  #start = 0;
  #end = 0;

  /** Adds the frames in plain[start, …). The memory must not be written to afterwards. */
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

  /** Delivers the collected frames. A block is not reused if the receiver keeps a reference. */
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
