// Two ends of an in-memory pipe with a delay, a capacity, a cut and a silence: the network for tests without sockets.
import { Duplex } from 'node:stream';

export interface DuplexPairOptions {
  readonly delayMs?: number;
  /** Bytes that may be under way in one direction before a write waits. */
  readonly capacityBytes?: number;
}

export interface DuplexPair {
  readonly left: Duplex;
  readonly right: Duplex;
  /** Both ends fail with ECONNRESET. */
  cut(): void;
  /** Nothing arrives any more and nobody is told: a half-open connection. */
  blackhole(): void;
  /** What was written meanwhile arrives now. */
  restore(): void;
}

export const duplexPair = (options: DuplexPairOptions = {}): DuplexPair => {
  const { delayMs = 0, capacityBytes = 64 * 1024 } = options;
  const left = new PairEnd(delayMs, capacityBytes);
  const right = new PairEnd(delayMs, capacityBytes);
  left.join(right);
  right.join(left);
  const both = [left, right];
  return {
    left,
    right,
    cut: () => both.forEach((end) => end.destroy(connectionReset())),
    blackhole: () => both.forEach((end) => end.setSilent(true)),
    restore: () => both.forEach((end) => end.setSilent(false)),
  };
};

const connectionReset = (): Error => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

interface InFlight {
  readonly dueAt: number;
  /** null: the end of this direction. */
  readonly chunk: Buffer | null;
}

class PairEnd extends Duplex {
  readonly #delayMs: number;
  readonly #capacityBytes: number;
  #other: PairEnd | null = null;
  #inFlight: InFlight[] = [];
  #inFlightBytes = 0;
  #waitingWrite: (() => void) | null = null;
  #timer: NodeJS.Timeout | null = null;
  #wanted = false;
  #silent = false;

  constructor(delayMs: number, capacityBytes: number) {
    super({ allowHalfOpen: true });
    this.#delayMs = delayMs;
    this.#capacityBytes = capacityBytes;
  }

  join(other: PairEnd): void {
    this.#other = other;
  }

  setSilent(silent: boolean): void {
    this.#silent = silent;
    if (this.destroyed) this.#tellOther();
    else this.deliver();
  }

  override _read(): void {
    this.#wanted = true;
    this.#other?.deliver();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#inFlight.push({ dueAt: performance.now() + this.#delayMs, chunk });
    this.#inFlightBytes += chunk.length;
    if (this.#inFlightBytes <= this.#capacityBytes) done();
    else this.#waitingWrite = done;
    this.deliver();
  }

  override _final(done: () => void): void {
    this.#inFlight.push({ dueAt: performance.now() + this.#delayMs, chunk: null });
    done();
    this.deliver();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#tellOther();
    done(error);
  }

  /** Hands what is due to the other end while it wants more. */
  deliver(): void {
    const other = this.#other;
    while (other !== null && other.#wanted && !this.#silent && !other.destroyed) {
      const first = this.#inFlight[0];
      if (first === undefined) return;
      const waitMs = first.dueAt - performance.now();
      if (waitMs > 0) {
        this.#timer ??= setTimeout(() => this.#onTimer(), waitMs);
        return;
      }
      this.#inFlight.shift();
      other.#wanted = false;
      this.#release(first.chunk?.length ?? 0);
      // push() asks for more through _read, which comes back here; `wanted` is its answer.
      if (other.push(first.chunk)) other.#wanted = true;
    }
  }

  #release(bytes: number): void {
    this.#inFlightBytes -= bytes;
    if (this.#waitingWrite === null || this.#inFlightBytes > this.#capacityBytes) return;
    const done = this.#waitingWrite;
    this.#waitingWrite = null;
    done();
  }

  /** An end that goes before both directions have finished is seen as a reset, once the link carries anything. */
  #tellOther(): void {
    const other = this.#other;
    if (this.#silent || other === null || (this.readableEnded && this.writableFinished)) return;
    queueMicrotask(() => other.destroy(connectionReset()));
  }

  #onTimer(): void {
    this.#timer = null;
    this.deliver();
  }
}
