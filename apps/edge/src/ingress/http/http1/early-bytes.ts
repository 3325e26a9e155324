// What a visitor has sent behind a request that is not answered yet: pipelined requests, the first of a body, or bytes behind an upgrade.
// It is read on meanwhile, for who is not read cannot be heard leaving, so this is where the bound is.
import { ByteQueue } from '@tunnel/mux';
import { EDGE_LIMITS } from '../../../limits.ts';

export class EarlyBytes {
  /** What was taken out and did not find its turn; ours alone, so it goes back without a copy. */
  #front: Buffer | null = null;
  readonly #queue = new ByteQueue();
  #isLost = false;

  get length(): number {
    return (this.#front?.length ?? 0) + this.#queue.length;
  }

  /** There was more than is kept: what is behind this request will never be answered. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** All of it. false: it is time to stop, and to wait for resume(). */
  push(bytes: Buffer, start: number, end: number): boolean {
    this.#queue.push(bytes, start, end);
    return this.length < EDGE_LIMITS.HTTP_EARLY_BYTES;
  }

  /** As long as there is room. */
  pushOrLose(bytes: Buffer, start: number, end: number): void {
    if (this.length + (end - start) > EDGE_LIMITS.HTTP_EARLY_BYTES) {
      this.#isLost = true;
      this.#front = null;
      this.#queue.clear();
    }
    if (!this.#isLost) this.#queue.push(bytes, start, end);
  }

  /** The next piece; the taker owns it. */
  shift(): Buffer {
    const front = this.#front;
    this.#front = null;
    return front ?? this.#queue.shift(this.#queue.length);
  }

  putBack(piece: Buffer): void {
    this.#front = piece;
  }
}
