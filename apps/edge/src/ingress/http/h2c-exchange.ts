// One request and its response as a stream of HTTP/2 to the local service. To its asker it is what Exchange is: heads are told
// as HTTP/1.1 would have them, so that visitors of either version are served.
import { type ClientHttp2Stream, constants } from 'node:http2';
import { CHUNK_END, chunkLine, type HeaderField, lastChunk, type ResponseHead } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { CallState } from './call-state.ts';
import type { H2cSession, H2cTaker } from './h2c-session.ts';
import { type RawFields, responseHeadOf, serviceFieldsOf, trailerFieldsOf, trailersOf } from './http2-fields.ts';
import type { ServiceCall } from './service-call.ts';

const { NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM, NGHTTP2_FLAG_END_STREAM } = constants;

export class H2cExchange extends CallState implements ServiceCall, H2cTaker {
  #session: H2cSession | null = null;
  #stream: ClientHttp2Stream | null = null;
  #isSecondTry = false;
  /** Node has bytes of the body, and we have them no more. */
  #hasGivenBody = false;
  #response: ResponseHead | null = null;
  /** Of a response with a length. */
  #leftBytes = Number.POSITIVE_INFINITY;
  #responseTrailers: readonly HeaderField[] = [];

  protected get awaitsHead(): boolean {
    return this.#response === null;
  }

  protected get isBehind(): boolean {
    return this.#stream === null || this.#stream.writableNeedDrain;
  }

  start(): void {
    this.context.h2c.take(this.tunnel, this);
  }

  onNotConnected(fault: Fault): void {
    this.fail(fault);
  }

  onConnected(session: H2cSession): void {
    if (this.isOver) return;
    const { text, hasBody } = this.request;
    // To wait for trailers also where none will come: else an abort would look like the end of the body.
    const stream = session.request(serviceFieldsOf(text), { endStream: !hasBody, waitForTrailers: hasBody });
    if (stream === null) {
      this.fail(new Fault('LOCAL_CLOSED', { reason: 'it closed the connection' }));
      return;
    }
    this.#session = session;
    this.#stream = stream;
    this.isSent = true;
    this.lastProgressMs = this.context.now();
    this.#listen(stream);
    const { waiting } = this;
    this.waiting = null;
    this.#hasGivenBody = waiting !== null;
    let hasRoom = true;
    while (waiting !== null && waiting.length > 0) hasRoom = stream.write(waiting.shift(waiting.length));
    if (!hasBody) return;
    if (this.requestDone) stream.end();
    else if (waiting !== null && hasRoom) this.asker.onBodyDrain();
  }

  #listen(stream: ClientHttp2Stream): void {
    // What was left behind may still speak.
    const on = <T extends unknown[]>(event: string, act: (...given: T) => void): void => {
      stream.on(event, (...given) => {
        if (this.#stream === stream) act(...(given as T));
      });
    };
    on('headers', (_headers, _flags, raw: RawFields) => this.#onInterim(raw));
    on('response', (_headers, flags: number, raw: RawFields) => {
      this.#onResponse(raw, flags);
      // Not before: node tells data of the same turn sooner than the head.
      on('data', (chunk: Buffer) => this.#onData(chunk));
      on('end', () => this.#onEnd(stream));
    });
    on('trailers', (_trailers, _flags, raw: RawFields) => this.#onTrailers(raw));
    on('drain', () => {
      this.lastProgressMs = this.context.now();
      this.asker.onBodyDrain();
    });
    on('close', () => this.#onBroken(stream));
    stream.on('error', () => {});
    stream.on('wantTrailers', () => {
      // Not after an abort: node would mark the end of the body before the reset.
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
    // A copy, also of what is borrowed: after an abort node may still hold it.
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
    if (head?.interim) this.asker.onInterim(head);
  }

  #onResponse(raw: RawFields, flags: number): void {
    this.answered();
    const endsHere = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
    const head = this.#read(raw, endsHere);
    if (head === null) return;
    // A visitor of HTTP/2 is told the end as the service told it: gRPC's answers of trailers alone have no length.
    const isBare = endsHere && this.asker.bodyForm === 'data' && head.framing.kind === 'length';
    const told: ResponseHead = isBare ? { ...head, framing: { kind: 'none' }, contentLength: null } : head;
    this.#response = told;
    if (told.framing.kind === 'length') this.#leftBytes = told.framing.length;
    this.asker.onHead(told);
    // Captures get the content, whatever the visitor gets.
    this.request.recorder?.onResponseHead(told, 'data');
    this.asker.onTurn();
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
      this.fail(new Fault('LOCAL_MALFORMED', { reason: 'its body is longer than its Content-Length' }));
      return;
    }
    this.request.recorder?.onResponseBody(chunk, 0, chunk.length);
    const inChunks = this.#isInChunks();
    if (inChunks) this.asker.onText(chunkLine(chunk.length));
    const goesOn = this.asker.onBody(chunk, 0, chunk.length, true);
    if (inChunks) this.asker.onText(CHUNK_END);
    this.asker.onTurn();
    if (!goesOn) this.#stream?.pause();
  }

  #isInChunks(): boolean {
    return this.#response?.framing.kind === 'chunked' && this.asker.bodyForm === 'chunks';
  }

  #onTrailers(raw: RawFields): void {
    const trailers = trailersOf(raw);
    if (trailers === null) this.fail(new Fault('LOCAL_MALFORMED', { reason: 'its trailers are malformed' }));
    else this.#responseTrailers = trailers;
  }

  #onEnd(stream: ClientHttp2Stream): void {
    const isShort = Number.isFinite(this.#leftBytes) && this.#leftBytes > 0;
    if (this.#response === null || isShort || stream.aborted) return this.#onBroken(stream);
    const trailers = this.#responseTrailers;
    if (this.#isInChunks()) this.asker.onText(lastChunk(trailers.map(({ name, value }) => [name, value])));
    else if (trailers.length > 0) this.asker.onTrailers(trailers);
    this.asker.onTurn();
    this.isOver = true;
    this.#stream = null;
    if (!this.requestDone) stream.close(NGHTTP2_CANCEL);
    this.request.recorder?.finish(this.context.now(), 'complete');
    this.asker.onDone(this.requestDone);
  }

  /** The stream ended before the response did. */
  #onBroken(stream: ClientHttp2Stream): void {
    this.#stream = null;
    stream.close(NGHTTP2_CANCEL);
    // The service says that it has done nothing yet (RFC 9113, 8.7), or the stream waited for its turn and was never sent.
    const isUntouched = stream.rstCode === NGHTTP2_REFUSED_STREAM || stream.id === undefined;
    if (isUntouched && !this.#hasGivenBody) this.isSent = false;
    if (this.#mayTryAgain()) {
      this.#isSecondTry = true;
      this.start();
      return;
    }
    this.fail(new Fault('LOCAL_CLOSED', { reason: 'it ended the call' }));
  }

  #mayTryAgain(): boolean {
    if (this.hasAnswer || this.#isSecondTry || this.request.hasBody || !this.isAtHand) return false;
    // It may have hung up on an idle connection.
    return !this.isSent || (this.isRepeatable && this.#session?.isReused === true);
  }

  protected letGo(): void {
    this.#stream?.close(NGHTTP2_CANCEL);
    this.#stream = null;
  }
}
