// The body of one request of an HTTP/2 visitor on its way to the service: as chunks or as it is, and only as fast as it is taken.
import type { ServerHttp2Stream } from 'node:http2';
import { CHUNK_END, chunkLine, type Framing, type HeaderField, lastChunk } from '@tunnel/core';
import { HEAD_ROOM_BYTES } from '@tunnel/mux';
import { type RawFields, trailersOf } from './http2-fields.ts';
import type { ServiceCall } from './service-call.ts';

export class Http2Body {
  /** null: nobody takes it yet. */
  call: ServiceCall | null = null;
  readonly #stream: ServerHttp2Stream;
  readonly #inChunks: boolean;
  readonly #onBad: (reason: string) => void;
  /** Of a body with a length. */
  #leftBytes: number;
  #trailers: readonly HeaderField[] = [];
  #isOver = false;

  constructor(
    stream: ServerHttp2Stream,
    { framing, inChunks }: { readonly framing: Framing; readonly inChunks: boolean },
    onBad: (reason: string) => void,
  ) {
    this.#stream = stream;
    this.#inChunks = inChunks && framing.kind === 'chunked';
    this.#leftBytes = framing.kind === 'length' ? framing.length : Number.POSITIVE_INFINITY;
    this.#onBad = onBad;
  }

  start(): void {
    this.#stream.on('trailers', (_trailers: unknown, _flags: unknown, raw: RawFields) => this.#onTrailers(raw));
    this.#stream.on('data', (chunk: Buffer) => this.#onData(chunk));
    this.#stream.on('end', () => this.#onEnd());
  }

  /** The service takes more. */
  resume(): void {
    this.#stream.resume();
  }

  /** Nobody wants the rest: it is thrown away as it comes. */
  drop(): void {
    this.#isOver = true;
    this.#stream.resume();
  }

  #onData(chunk: Buffer): void {
    if (this.#isOver || chunk.length === 0) return;
    this.#leftBytes -= chunk.length;
    // node has compared them already; a service that would read on into the next request must not depend on it.
    if (this.#leftBytes < 0) {
      this.#fail('the body is longer than its Content-Length');
      return;
    }
    const isFree = this.#inChunks ? this.#writeChunk(chunk) : this.call?.writeBody(chunk, 0, chunk.length, true);
    if (isFree === false) this.#stream.pause();
  }

  #writeChunk(chunk: Buffer): boolean | undefined {
    const line = chunkLine(chunk.length);
    const dataAt = HEAD_ROOM_BYTES + line.length;
    const framed = Buffer.allocUnsafe(dataAt + chunk.length + CHUNK_END.length);
    framed.write(line, HEAD_ROOM_BYTES, 'latin1');
    framed.set(chunk, dataAt);
    framed.write(CHUNK_END, dataAt + chunk.length, 'latin1');
    return this.call?.writeBody(framed, HEAD_ROOM_BYTES, framed.length, true);
  }

  #onTrailers(raw: RawFields): void {
    const trailers = trailersOf(raw);
    if (trailers === null) this.#fail('its trailers are malformed');
    else this.#trailers = trailers;
  }

  #onEnd(): void {
    // A stream that was cut off ends, too.
    if (this.#isOver || this.#stream.aborted || this.#stream.destroyed) return;
    this.#isOver = true;
    if (Number.isFinite(this.#leftBytes) && this.#leftBytes > 0) {
      this.#fail('the body is shorter than its Content-Length');
      return;
    }
    if (this.#inChunks) {
      const last = Buffer.from(lastChunk(this.#trailers.map(({ name, value }) => [name, value])), 'latin1');
      this.call?.writeBody(last, 0, last.length, true);
    }
    this.call?.endBody(this.#trailers);
  }

  #fail(reason: string): void {
    this.#isOver = true;
    this.#onBad(reason);
  }
}
