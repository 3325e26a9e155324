// A request and its response as an HTTP/2 stream to the local service. Independent of the requester.
import { type ClientHttp2Stream, constants } from 'node:http2';
import { Fault } from '@tunnel/errors';
import type { HeaderField, ResponseHead } from '@tunnel/http1';
import { guard, type Listener } from '@tunnel/mux';
import type { ResponseHandler } from '../response-handler.ts';
import {
  InterimHeads,
  type Service,
  type ServiceRequest,
  type UpstreamContext,
  UpstreamRequest,
} from '../upstream-request.ts';
import type { H2cConnection, H2cConnections } from './h2c-connections.ts';
import { type RawFields, responseHeadOf, serviceFieldsOf, trailerFieldsOf, trailersOf } from './http2-fields.ts';

const { NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM, NGHTTP2_FLAG_END_STREAM } = constants;

/** Name of h2c calls in reports of errors thrown by event handlers. */
const SCOPE = 'h2c.stream';

export class H2cUpstream extends UpstreamRequest {
  readonly #connections: H2cConnections;
  #connection: H2cConnection | null = null;
  #stream: ClientHttp2Stream | null = null;
  #isSecondTry = false;
  /** Whether bytes of the request body were passed to Node.js, so that the request cannot be sent again. */
  #hasGivenBody = false;
  #response: ResponseHead | null = null;
  /** Remaining bytes of a service's response with Content-Length. */
  #leftBytes = Number.POSITIVE_INFINITY;
  #responseTrailers: readonly HeaderField[] = [];
  #interim: InterimHeads | null = null;

  constructor(
    connections: H2cConnections,
    context: UpstreamContext,
    service: Service,
    request: ServiceRequest,
    handler: ResponseHandler,
  ) {
    super(context, service, request, handler);
    this.#connections = connections;
  }

  protected get awaitsHead(): boolean {
    return this.#response === null;
  }

  protected get isBehind(): boolean {
    return this.#stream === null || this.#stream.writableNeedDrain;
  }

  start(): void {
    this.#connections.take(this.service, this.request.serviceName, this);
  }

  onNotConnected(fault: Fault): void {
    this.fail(fault);
  }

  onConnected(connection: H2cConnection): void {
    if (this.isOver) return;
    const { head, options, hasBody } = this.request;
    const fields = serviceFieldsOf(head, options);
    // Waits for trailers even if there are none. Otherwise an abort would look like the end of the body.
    const stream = connection.request(fields, { endStream: !hasBody, waitForTrailers: hasBody });
    if (stream === null) {
      this.fail(new Fault('LOCAL_CLOSED', { reason: 'connection closed' }));
      return;
    }
    this.#connection = connection;
    this.#stream = stream;
    this.isSent = true;
    this.lastProgressMs = this.context.preciseNow();
    this.#listen(stream);
    const { waiting } = this;
    this.waiting = null;
    this.#hasGivenBody = waiting !== null;
    let hasRoom = true;
    while (waiting !== null && waiting.length > 0) hasRoom = stream.write(waiting.shift(waiting.length));
    if (!hasBody) return;
    if (this.requestDone) stream.end();
    else if (waiting !== null && hasRoom) this.handler.onRequestDrain();
  }

  #listen(stream: ClientHttp2Stream): void {
    // Handles events of the call's stream. Events of an abandoned stream are ignored.
    const on = (event: string, act: Listener): void =>
      guard.listen(stream, event, this, SCOPE, (a: never, b: never, c: never, d: never) => {
        if (this.#stream === stream) act(a, b, c, d);
      });
    on('headers', (_headers, _flags, raw: RawFields) => this.#onInterim(raw));
    on('response', (_headers, flags: number, raw: RawFields) => {
      this.#onResponse(raw, flags);
      // The 'data' listener is added only now, because Node emits data of the same turn before the head.
      on('data', (chunk: Buffer) => this.#onData(chunk));
      on('end', () => this.#onEnd(stream));
    });
    on('trailers', (_trailers, _flags, raw: RawFields) => this.#onTrailers(raw));
    const onTaken = (): void => {
      this.lastProgressMs = this.context.now();
      this.handler.onRequestDrain();
    };
    on('drain', onTaken);
    // Node.js emits no 'drain' event after the end of a request body, so 'finish' is used.
    if (this.request.hasBody) on('finish', onTaken);
    on('close', () => this.#onBroken(stream));
    guard.listen(stream, 'error', this, SCOPE, () => {});
    guard.listen(stream, 'wantTrailers', this, SCOPE, () => {
      // Trailers are not sent after an abort, because Node would mark the end of the body before the reset.
      if (this.requestDone && !stream.closed) stream.sendTrailers(trailerFieldsOf(this.requestTrailers));
    });
  }

  // ---- the request's body ----

  writeBody(bytes: Buffer, start: number, end: number): boolean {
    this.lastProgressMs = this.context.now();
    if (this.isOver) return true;
    this.request.recorder?.onRequestBody(bytes, start, end);
    if (this.#stream === null) return this.keepWaiting(bytes, start, end);
    this.#hasGivenBody = true;
    // Even borrowed memory is copied, because Node may still hold it after an abort.
    return this.#stream.write(Buffer.from(bytes.subarray(start, end)));
  }

  endBody(trailers: readonly HeaderField[] = []): void {
    this.requestDone = true;
    this.requestTrailers = trailers;
    this.request.recorder?.onRequestEnd();
    this.lastProgressMs = this.context.now();
    if (this.request.hasBody) this.#stream?.end();
  }

  // ---- the response ----

  resume(): void {
    this.#stream?.resume();
  }

  #onInterim(raw: RawFields): void {
    this.answered();
    const head = this.#read(raw, false);
    if (head === null) return;
    this.#interim ??= new InterimHeads();
    const problem = this.#interim.take(raw.reduce((sum, { length }) => sum + length, 0));
    // Interim heads of HTTP/2 responses cannot be paused, so only their number is limited.
    if (problem === null && head.interim) this.handler.onInterim(head);
    else if (problem !== null) this.fail(new Fault('LOCAL_MALFORMED', { reason: problem }));
  }

  #onResponse(raw: RawFields, flags: number): void {
    this.answered();
    const endsHere = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
    const head = this.#read(raw, endsHere);
    if (head === null) return;
    this.#response = head;
    if (head.framing.kind === 'length' && !endsHere) this.#leftBytes = head.framing.length;
    this.handler.onHead(head, endsHere);
    this.request.recorder?.onResponseHead(head, 'data');
    if (!this.handler.onTurn()) this.#stream?.pause();
  }

  #read(raw: RawFields, endsHere: boolean): ResponseHead | null {
    const head = responseHeadOf(raw, this.request.head, endsHere);
    if (head.kind === 'response') return head;
    this.fail(new Fault('LOCAL_MALFORMED', { reason: head.reason }));
    return null;
  }

  #onData(chunk: Buffer): void {
    const framing = this.#response?.framing.kind;
    if (framing === undefined || framing === 'none' || chunk.length === 0) return;
    this.#leftBytes -= chunk.length;
    if (this.#leftBytes < 0) {
      this.fail(new Fault('LOCAL_MALFORMED', { reason: 'the body is longer than the Content-Length' }));
      return;
    }
    this.request.recorder?.onResponseBody(chunk, 0, chunk.length);
    const takesMore = this.handler.onData(chunk, 0, chunk.length, true);
    if (!this.handler.onTurn() || !takesMore) this.#stream?.pause();
  }

  #onTrailers(raw: RawFields): void {
    const trailers = trailersOf(raw);
    if (trailers === null) this.fail(new Fault('LOCAL_MALFORMED', { reason: 'the trailers are malformed' }));
    else this.#responseTrailers = trailers;
  }

  #onEnd(stream: ClientHttp2Stream): void {
    const isShort = Number.isFinite(this.#leftBytes) && this.#leftBytes > 0;
    if (this.#response === null || isShort || stream.aborted) return this.#onBroken(stream);
    const trailers = this.#responseTrailers;
    if (trailers.length > 0) this.handler.onTrailers(trailers);
    this.handler.onTurn();
    this.isOver = true;
    this.#leave();
    if (!this.requestDone) stream.close(NGHTTP2_CANCEL);
    this.request.recorder?.finish(this.context.now(), 'complete');
    this.handler.onEnd(this.requestDone);
  }

  /** Handles an h2c call if its stream ended before the response. */
  #onBroken(stream: ClientHttp2Stream): void {
    this.letGo();
    // The service reports that it has not processed the request (RFC 9113, 8.7), or the stream was queued and never sent.
    const isUntouched = stream.rstCode === NGHTTP2_REFUSED_STREAM || stream.id === undefined;
    if (isUntouched && !this.#hasGivenBody) this.isSent = false;
    if (this.#mayTryAgain()) {
      this.#isSecondTry = true;
      this.start();
      return;
    }
    this.fail(new Fault('LOCAL_CLOSED', { reason: 'call ended' }));
  }

  #mayTryAgain(): boolean {
    if (this.hasAnswer || this.#isSecondTry || this.request.hasBody || !this.isConnected) return false;
    // The request can be repeated, because the service may have closed an idle connection.
    return !this.isSent || (this.isRepeatable && this.#connection?.isReused === true);
  }

  protected letGo(): void {
    const stream = this.#stream;
    if (stream === null) return;
    this.#leave();
    // The service has already closed the stream. Node would wait until the rest is read, so the stream is destroyed.
    if (stream.closed) stream.destroy();
    else stream.close(NGHTTP2_CANCEL);
  }

  /** Abandons the call, at most once: the handler may cancel the request during its end. */
  #leave(): void {
    if (this.#stream !== null) this.#connection?.leave();
    this.#stream = null;
  }
}
