// Request body of an HTTP/2 visitor on its way to the service or to the policy's buffer, as fast as the taker accepts it.
import type { ServerHttp2Stream } from 'node:http2';
import type { Framing, HeaderField } from '@tunnel/http1';
import { guard } from '@tunnel/mux';
import { type RawFields, trailersOf } from '../../../upstream/h2c/http2-fields.ts';
import type { BodySource } from '../body-source.ts';
import type { Http2Request } from './http2-request.ts';

/** Name of HTTP/2 request streams in reports of errors thrown by event handlers. */
const SCOPE = 'http2.stream';

export class Http2Body implements BodySource {
  readonly form = 'data';
  taker: BodySource['taker'] = null;
  receivedBytes = 0;
  /** Maximum size of the request body, set by the policy. */
  maxBytes = Number.POSITIVE_INFINITY;
  readonly #stream: ServerHttp2Stream;
  readonly #request: Http2Request;
  /** Remaining bytes of a request body with Content-Length. */
  #leftBytes: number;
  #trailers: readonly HeaderField[] = [];
  #isPaused = false;
  #isOver = false;

  constructor(stream: ServerHttp2Stream, framing: Framing, request: Http2Request) {
    this.#stream = stream;
    this.#leftBytes = framing.kind === 'length' ? framing.length : Number.POSITIVE_INFINITY;
    this.#request = request;
  }

  start(earlyTrailers: RawFields | null): void {
    if (earlyTrailers !== null) this.#onTrailers(earlyTrailers);
    guard.listen(this.#stream, 'trailers', this.#request, SCOPE, (_trailers, _flags, raw: RawFields) =>
      this.#onTrailers(raw),
    );
    guard.listen(this.#stream, 'data', this.#request, SCOPE, (chunk: Buffer) => this.#onData(chunk));
    guard.listen(this.#stream, 'end', this.#request, SCOPE, () => this.#onEnd());
  }

  /** True if the service currently accepts no more bytes of the request body. */
  get isPaused(): boolean {
    return this.#isPaused && !this.#isOver;
  }

  /** Resumes reading the request body, because the service accepts more bytes. */
  resume(): void {
    this.#isPaused = false;
    this.#stream.resume();
  }

  /** Discards the rest of the request body as it arrives. */
  drop(): void {
    this.#isOver = true;
    this.#stream.resume();
  }

  #onData(chunk: Buffer): void {
    if (this.#isOver || chunk.length === 0) return;
    this.receivedBytes += chunk.length;
    this.#leftBytes -= chunk.length;
    // Node has checked the length already. The second check ensures that a service can never read into the next request.
    if (this.#leftBytes < 0) {
      this.#fail('the body is longer than the Content-Length');
      return;
    }
    if (this.receivedBytes > this.maxBytes) {
      this.#isOver = true;
      this.#request.onBodyTooLarge();
      return;
    }
    if (this.taker?.writeBody(chunk, 0, chunk.length, true) !== false) return;
    this.#isPaused = true;
    this.#stream.pause();
  }

  #onTrailers(raw: RawFields): void {
    const trailers = trailersOf(raw);
    if (trailers === null) this.#fail('the trailers are malformed');
    else this.#trailers = trailers;
  }

  #onEnd(): void {
    // An HTTP/2 stream that was cut off emits 'end' too, so its end is ignored.
    if (this.#isOver || this.#stream.aborted || this.#stream.destroyed) return;
    this.#isOver = true;
    if (Number.isFinite(this.#leftBytes) && this.#leftBytes > 0) {
      this.#fail('the body is shorter than the Content-Length');
      return;
    }
    this.#request.onBodyEnd(this.#trailers);
  }

  #fail(reason: string): void {
    this.#isOver = true;
    this.#request.onBadBody(reason);
  }
}
