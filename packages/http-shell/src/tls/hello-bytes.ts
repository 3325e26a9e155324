// Collects the first bytes of a connection until they contain a ClientHello. A hello in one piece, which is the usual case, is parsed in
// place; bytes are copied only if more must be awaited.
import { type HelloReading, readClientHello } from './client-hello.ts';

export class HelloBytes {
  #bytes: Buffer | null = null;
  #length = 0;
  /** True if the bytes have been copied to separate memory. */
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

  /** The bytes collected so far. Valid only until the next read from the socket, unless keep() was called. */
  get all(): Buffer {
    return this.#bytes?.subarray(0, this.#length) ?? NOTHING;
  }

  /** Copies the bytes, because the memory they were read into is shared by all connections. Returns the copy. */
  keep(): Buffer {
    if (!this.#isKept) this.#bytes = Buffer.from(this.all);
    this.#isKept = true;
    return this.all;
  }

  /** Discards the collected bytes when they are no longer needed. */
  drop(): void {
    this.#bytes = null;
    this.#length = 0;
  }

  /** Appends bytes of the connection to the bytes collected before. */
  append(bytes: Buffer, start: number, end: number): void {
    const length = this.#length + end - start;
    let kept = this.#bytes as Buffer;
    if (kept.length < length) {
      // Double the capacity, so that a peer that sends single bytes does not cause a copy for every byte. The capacity never exceeds the
      // announced size.
      kept = Buffer.allocUnsafeSlow(Math.max(length, Math.min(2 * kept.length, this.#atLeast)));
      (this.#bytes as Buffer).copy(kept, 0, 0, this.#length);
    }
    bytes.copy(kept, this.#length, start, end);
    this.#bytes = kept;
    this.#length = length;
  }
}

const NOTHING = Buffer.alloc(0);
