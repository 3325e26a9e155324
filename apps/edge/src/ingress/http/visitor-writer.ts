// What goes out to one HTTP/1.1 visitor: the head waits for the first bytes of its body, so that a small answer is one write.
import type { ByteDuplex } from '@tunnel/mux';

/** Up to here a copy behind the head is cheaper than a write of its own. */
const JOINED_MAX_BYTES = 16 * 1024;

export class VisitorWriter {
  readonly #end: ByteDuplex;
  #head = '';

  constructor(end: ByteDuplex) {
    this.#end = end;
  }

  /** Latin1 text: a head, a chunk line, trailers. */
  text(text: string): void {
    this.#head += text;
  }

  /** Same rule as ByteDuplex.write. */
  bytes(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.#head === '') return this.#end.write(bytes, start, end, borrowed);
    const length = end - start;
    if (length > JOINED_MAX_BYTES) {
      this.flush();
      return this.#end.write(bytes, start, end, borrowed);
    }
    const head = this.#head;
    this.#head = '';
    const joined = Buffer.allocUnsafe(head.length + length);
    joined.write(head, 0, 'latin1');
    joined.set(bytes.subarray(start, end), head.length);
    // Ours alone, so it may be kept; the memory of `bytes` is free in any case.
    return this.#end.write(joined, 0, joined.length, true);
  }

  /** Of what has not left. */
  drop(): void {
    this.#head = '';
  }

  flush(): void {
    const head = this.#head;
    if (head === '') return;
    this.#head = '';
    const bytes = Buffer.from(head, 'latin1');
    this.#end.write(bytes, 0, bytes.length, true);
  }
}
