// The visitor's end with somebody looking on: bytes pass first and are looked at after, in the memory they came in.
import type { ByteDuplex, ByteReader } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { HttpTap } from './http-tap.ts';

/** What is read from `visitor` are requests, what is written to it are responses. */
export class TappedDuplex implements ByteDuplex {
  readonly #visitor: ByteDuplex;
  readonly #tap: HttpTap;

  constructor(visitor: ByteDuplex, tap: HttpTap) {
    this.#visitor = visitor;
    this.#tap = tap;
  }

  read(reader: ByteReader): void {
    this.#visitor.read(new TappedReader(reader, this.#tap));
  }

  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const goOn = this.#visitor.write(bytes, start, end, borrowed);
    this.#tap.response(bytes, start, end);
    return goOn;
  }

  resume(): void {
    this.#visitor.resume();
  }

  end(onFlushed?: () => void): void {
    this.#visitor.end(onFlushed);
    this.#tap.responseEnded();
  }

  reset(reason: StreamReason): void {
    this.#visitor.reset(reason);
    this.#tap.over();
  }
}

class TappedReader implements ByteReader {
  readonly #reader: ByteReader;
  readonly #tap: HttpTap;

  constructor(reader: ByteReader, tap: HttpTap) {
    this.#reader = reader;
    this.#tap = tap;
  }

  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const goOn = this.#reader.onData(bytes, start, end, borrowed);
    this.#tap.request(bytes, start, end);
    return goOn;
  }

  onDrain(): void {
    this.#reader.onDrain();
  }

  onEnd(): void {
    this.#reader.onEnd();
  }

  onReset(reason: StreamReason): void {
    this.#reader.onReset(reason);
    this.#tap.over();
  }
}
