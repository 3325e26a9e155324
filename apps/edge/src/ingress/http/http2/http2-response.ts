// The answer to one request of an HTTP/2 visitor, as it is written: the service's, or one of our own.
import { constants, type ServerHttp2Stream } from 'node:http2';
import { type EdgeResponse, type HeaderField, hasNoBody, type ResponseHead } from '@tunnel/http1';
import { type Guarded, guard } from '@tunnel/mux';
import type { EdgeReply } from '../../../routing/http-router.ts';
import { ownFieldsOf, responseFieldsOf, trailerFieldsOf } from '../../../upstream/h2c/http2-fields.ts';
import { type ResponseEdits, renderAnswer } from '../render-answer.ts';
import { type Http2Outbound, OutboundShare } from './http2-outbound.ts';

const { NGHTTP2_HTTP_1_1_REQUIRED, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;

export class Http2Response {
  readonly #stream: ServerHttp2Stream;
  readonly #outbound: Http2Outbound;
  readonly #share = new OutboundShare();
  readonly #onBegun: (status: number) => void;
  readonly #owner: Guarded;
  #writtenBytes = 0;
  #trailers: readonly HeaderField[] = [];
  #hasTrailers = false;
  #closesAtEnd = false;
  #isBegun = false;
  #isCut = false;

  /** `onBegun`: its head is about to go out. */
  constructor(stream: ServerHttp2Stream, outbound: Http2Outbound, onBegun: (status: number) => void, owner: Guarded) {
    this.#stream = stream;
    this.#outbound = outbound;
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

  /** What node has of its body and has not sent. */
  get queuedBytes(): number {
    return this.#stream.writableLength;
  }

  /** What was sent of its body, by whole writes. */
  get sentBytes(): number {
    return this.#writtenBytes - this.#stream.writableLength;
  }

  interim(head: ResponseHead): void {
    if (!this.#isWritable()) return;
    this.#count(head.headers);
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
    this.#count(head.headers);
    // It may have been too much.
    if (!this.#isWritable()) return;
    this.#stream.respond(responseFieldsOf(isBare ? { ...head, contentLength: null } : head), {
      endStream,
      waitForTrailers: !endStream,
      ...NO_DATE,
    });
  }

  body(bytes: Buffer, start: number, end: number): boolean {
    if (!this.#isWritable()) return true;
    this.#writtenBytes += end - start;
    // A copy, also of what is borrowed: after an abort node may still send it, while its owner has long used it for others.
    return this.#stream.write(Buffer.from(bytes.subarray(start, end)));
  }

  trailers(trailers: readonly HeaderField[]): void {
    this.#trailers = trailers;
  }

  /** false: nobody is there to read it. */
  reply(answer: EdgeReply, accept: string | null, edits: ResponseEdits | null): boolean {
    if (!this.#isWritable()) return false;
    const response = renderAnswer(answer, accept, edits);
    this.#begin(response.status);
    const body = hasNoBody(response.status) ? '' : response.body;
    this.#outbound.add(this.#share, headBytesOf(response) + body.length);
    if (!this.#isWritable()) return false;
    this.#writtenBytes += body.length;
    this.#stream.respond(ownFieldsOf(response), { endStream: body === '', ...NO_DATE });
    if (this.#isWritable()) this.#stream.write(body, 'latin1');
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

  /** The visitor is to ask once more, on a connection of HTTP/1.1 (RFC 9113, 7). */
  askForHttp1(): void {
    this.#isCut = true;
    this.#stream.close(NGHTTP2_HTTP_1_1_REQUIRED);
  }

  /** The stream is over, or has sent all that it had. */
  onAllOut(): void {
    this.#outbound.release(this.#share);
  }

  #count(fields: readonly HeaderField[]): void {
    let bytes = FIELD_BYTES;
    for (const { name, value } of fields) bytes += name.length + value.length + FIELD_BYTES;
    this.#outbound.add(this.#share, bytes);
  }

  #begin(status: number): void {
    this.#isBegun = true;
    this.#onBegun(status);
  }

  #sendTrailers(): void {
    if (this.#stream.destroyed || this.#stream.closed) return;
    this.#count(this.#trailers);
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

/** What a field costs beside its text (RFC 9113, 6.5.2). */
const FIELD_BYTES = 32;
/** What a head of our own costs beside its fields. */
const OWN_HEAD_BYTES = 512;

/** Rules may give an answer of our own as many fields as a service has. */
const headBytesOf = ({ headers }: EdgeResponse): number =>
  headers.reduce((sum, [name, value]) => sum + name.length + value.length + FIELD_BYTES, OWN_HEAD_BYTES);

/** The service's own Date, or none; node's types know the option only elsewhere. */
const NO_DATE = { sendDate: false } as object;
