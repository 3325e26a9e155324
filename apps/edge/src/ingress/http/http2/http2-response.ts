// The answer to one request of an HTTP/2 visitor, as it is written: the service's, or one of our own.
import { constants, type ServerHttp2Stream } from 'node:http2';
import type { HeaderField, ResponseHead } from '@tunnel/core';
import { type Guarded, guard } from '@tunnel/mux';
import type { OwnAnswer } from '../../../routing/http-router.ts';
import { ownFieldsOf, responseFieldsOf, trailerFieldsOf } from '../../../upstream/h2c/http2-fields.ts';
import { renderAnswer } from '../own-answer.ts';

const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;

export class Http2Response {
  readonly #stream: ServerHttp2Stream;
  readonly #onBegun: (status: number) => void;
  readonly #owner: Guarded;
  #trailers: readonly HeaderField[] = [];
  #hasTrailers = false;
  #closesAtEnd = false;
  #isBegun = false;
  #isCut = false;

  /** `onBegun`: its head is about to go out. */
  constructor(stream: ServerHttp2Stream, onBegun: (status: number) => void, owner: Guarded) {
    this.#stream = stream;
    this.#onBegun = onBegun;
    this.#owner = owner;
    guard.listen(stream, 'wantTrailers', owner, 'http2.stream', () => this.#sendTrailers());
  }

  get isBegun(): boolean {
    return this.#isBegun;
  }

  /** We reset it. */
  get isCut(): boolean {
    return this.#isCut;
  }

  interim(head: ResponseHead): void {
    if (this.#isWritable()) this.#stream.additionalHeaders(responseFieldsOf(head));
  }

  /** The end is told as the service told it: gRPC's answers of trailers alone have no length. */
  head(head: ResponseHead, endsStream: boolean): void {
    if (!this.#isWritable()) return;
    const { framing } = head;
    const isBare = endsStream && framing.kind === 'length';
    const endStream = isBare || framing.kind === 'none' || (framing.kind === 'length' && framing.length === 0);
    // Also where none will come: without it node marks the end before a reset, and half a body would look whole.
    this.#hasTrailers = !endStream;
    this.#begin(head.status);
    this.#stream.respond(responseFieldsOf(isBare ? { ...head, contentLength: null } : head), {
      endStream,
      waitForTrailers: !endStream,
      ...NO_DATE,
    });
  }

  body(bytes: Buffer, start: number, end: number): boolean {
    if (!this.#isWritable()) return true;
    // A copy, also of what is borrowed: after an abort node may still send it, while its owner has long used it for others.
    return this.#stream.write(Buffer.from(bytes.subarray(start, end)));
  }

  trailers(trailers: readonly HeaderField[]): void {
    this.#trailers = trailers;
  }

  /** false: nobody is there to read it. */
  own(answer: OwnAnswer, accept: string | null): boolean {
    if (!this.#isWritable()) return false;
    const response = renderAnswer(answer, accept);
    this.#begin(response.status);
    this.#stream.respond(ownFieldsOf(response), { endStream: response.body === '', ...NO_DATE });
    if (this.#isWritable()) this.#stream.write(response.body, 'latin1');
    return true;
  }

  /** `dropsRest`: the visitor need not send the rest of its request (RFC 9113, 8.1). */
  end(dropsRest: boolean): void {
    const stream = this.#stream;
    if (dropsRest) {
      this.#closesAtEnd = true;
      // With trailers the end comes after them.
      if (stream.writableFinished) this.#closeAtEnd();
      else if (!this.#hasTrailers)
        guard.listen(stream, 'finish', this.#owner, 'http2.stream', () => this.#closeAtEnd());
    }
    stream.end();
  }

  /** Half of an answer is out: only a reset tells the visitor that the rest is missing. */
  cut(): void {
    this.#isCut = true;
    if (!this.#stream.destroyed) this.#stream.close(NGHTTP2_INTERNAL_ERROR);
  }

  #begin(status: number): void {
    this.#isBegun = true;
    this.#onBegun(status);
  }

  #sendTrailers(): void {
    if (this.#stream.destroyed || this.#stream.closed) return;
    this.#stream.sendTrailers(trailerFieldsOf(this.#trailers));
    this.#closeAtEnd();
  }

  #closeAtEnd(): void {
    if (this.#closesAtEnd && !this.#stream.destroyed) this.#stream.close(NGHTTP2_NO_ERROR);
  }

  /** Also false for HEAD once node has ended the answer by itself, except for the head itself. */
  #isWritable(): boolean {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return false;
    return !stream.headersSent || !stream.writableEnded;
  }
}

/** The service's own Date, or none; node's types know the option only elsewhere. */
const NO_DATE = { sendDate: false } as object;
