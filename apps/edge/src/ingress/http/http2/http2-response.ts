// Response to a request of an HTTP/2 visitor, from the service or from the edge.
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

  /** Creates the response on an HTTP/2 stream. `onBegun` is called just before the head is sent. */
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

  /** True if the edge has reset the HTTP/2 stream of the response. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Bytes of the response body held by Node.js that are not sent yet. */
  get queuedBytes(): number {
    return this.#stream.writableLength;
  }

  /** Bytes of the response body that were sent, counted by complete writes. */
  get sentBytes(): number {
    return this.#writtenBytes - this.#stream.writableLength;
  }

  interim(head: ResponseHead): void {
    if (!this.#isWritable()) return;
    this.#count(head.headers);
    if (this.#isWritable()) this.#stream.additionalHeaders(responseFieldsOf(head));
  }

  /** Sends the head. Ends the stream exactly as the service did: gRPC's trailers-only responses have no Content-Length. */
  head(head: ResponseHead, endsStream: boolean): void {
    if (!this.#isWritable()) return;
    const { framing } = head;
    const isBare = endsStream && framing.kind === 'length';
    const endStream = isBare || framing.kind === 'none' || (framing.kind === 'length' && framing.length === 0);
    // Trailers are announced even if none will follow. Otherwise Node marks the end of the stream before a reset, and half a body would
    // look complete.
    this.#hasTrailers = !endStream;
    this.#begin(head.status);
    this.#count(head.headers);
    // Counting the response head may have exceeded the limit and closed the stream.
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
    // Even borrowed memory is copied: after an abort Node may still send the bytes, when their owner has already reused the memory.
    return this.#stream.write(Buffer.from(bytes.subarray(start, end)));
  }

  trailers(trailers: readonly HeaderField[]): void {
    this.#trailers = trailers;
  }

  /** Sends a response of the edge. Returns false if the visitor has disconnected. */
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

  /** Ends the response. `dropsRest`: the visitor need not send the rest of its request (RFC 9113, 8.1). */
  end(dropsRest: boolean): void {
    const stream = this.#stream;
    if (dropsRest) {
      this.#closesAtEnd = true;
      // A response with trailers closes its HTTP/2 stream after the trailers.
      if (stream.writableFinished) this.#closeNextTurn();
      else if (!this.#hasTrailers)
        guard.listen(stream, 'finish', this.#owner, 'http2.stream', () => this.#closeNextTurn());
    }
    stream.end();
  }

  /** Resets the stream in the middle of a response, so that the visitor notices the missing rest. */
  cut(): void {
    this.#isCut = true;
    if (!this.#stream.destroyed) this.#stream.close(NGHTTP2_INTERNAL_ERROR);
  }

  /** Asks the visitor to repeat the request over HTTP/1.1 (RFC 9113, 7). */
  askForHttp1(): void {
    this.#isCut = true;
    this.#stream.close(NGHTTP2_HTTP_1_1_REQUIRED);
  }

  /** Called when the response's HTTP/2 stream has closed or everything queued was sent. */
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

  /**
   * Closes the stream after the head was sent. A response without a body counts as finished before its head leaves, at the end of the turn,
   * and with Node.js 22.23 and 26.10 a reset in the same turn would replace the head.
   */
  #closeNextTurn(): void {
    setImmediate(() => this.#closeAtEnd());
  }

  #closeAtEnd(): void {
    if (this.#closesAtEnd && !this.#stream.destroyed) this.#stream.close(NGHTTP2_NO_ERROR);
  }

  /** Reports whether the stream accepts data. Also false for HEAD once Node has ended the response automatically, except for the head. */
  #isWritable(): boolean {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return false;
    return !stream.headersSent || !stream.writableEnded;
  }
}

/** Overhead of a header field in HTTP/2 in bytes (RFC 9113, 6.5.2). */
const FIELD_BYTES = 32;
/** Overhead of an edge response's head in bytes, in addition to its fields. */
const OWN_HEAD_BYTES = 512;

/** Returns the size of an edge response's head. A policy can add as many fields to it as a service can. */
const headBytesOf = ({ headers }: EdgeResponse): number =>
  headers.reduce((sum, [name, value]) => sum + name.length + value.length + FIELD_BYTES, OWN_HEAD_BYTES);

/** Keeps the service's Date header, or its absence. Node's types declare the option only elsewhere. */
const NO_DATE = { sendDate: false } as object;
