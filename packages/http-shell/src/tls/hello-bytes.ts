// The first bytes of one connection, until they are a hello. What comes in one piece, as nearly all do, is read where it lies; only what has to
// wait for more is copied.
import { type HelloReading, readClientHello } from './client-hello.ts';

export class HelloBytes {
  #bytes: Buffer | null = null;
  #length = 0;
  /** They lie in memory of our own. */
  #isKept = false;
  #atLeast = 0;

  take(bytes: Buffer, start: number, end: number): HelloReading {
    if (this.#bytes === null) {
      this.#bytes = bytes.subarray(start, end);
      this.#length = end - start;
    } else this.append(bytes, start, end);
    if (this.#length < this.#atLeast) return { kind: 'more', atLeast: this.#atLeast };
    const reading = readClientHello(this.all);
    if (reading.kind === 'more') {
      this.#atLeast = reading.atLeast;
      this.keep();
    }
    return reading;
  }

  /** All of them; only for this call unless they were kept. */
  get all(): Buffer {
    return this.#bytes?.subarray(0, this.#length) ?? NOTHING;
  }

  /** For later: the memory that they were read into is everybody's. */
  keep(): Buffer {
    if (!this.#isKept) this.#bytes = Buffer.from(this.all);
    this.#isKept = true;
    return this.all;
  }

  /** Nobody needs them any more. */
  drop(): void {
    this.#bytes = null;
    this.#length = 0;
  }

  /** To those that are kept. */
  append(bytes: Buffer, start: number, end: number): void {
    const length = this.#length + end - start;
    let kept = this.#bytes as Buffer;
    if (kept.length < length) {
      // Twice as much each time, so that one that sends byte by byte is not copied each time; but no more than it says it needs.
      kept = Buffer.allocUnsafeSlow(Math.max(length, Math.min(2 * kept.length, this.#atLeast)));
      (this.#bytes as Buffer).copy(kept, 0, 0, this.#length);
    }
    bytes.copy(kept, this.#length, start, end);
    this.#bytes = kept;
    this.#length = length;
  }
}

const NOTHING = Buffer.alloc(0);
