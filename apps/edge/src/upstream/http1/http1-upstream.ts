// A request and its response over a stream to a local HTTP/1.1 service. Independent of the requester.

import { Fault } from '@tunnel/errors';
import { CHUNK_END, chunkLine, type HeaderField, lastChunk, requestHeadFor } from '@tunnel/http1';
import { type ByteReader, HEAD_ROOM_BYTES, type PendingStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../limits.ts';
import type { ResponseHandler } from '../response-handler.ts';
import { faultOfRefusal, type UpstreamAnswer, type UpstreamStream } from '../upstream.ts';
import {
  ABORTED,
  type Service,
  type ServiceRequest,
  streamHeadOf,
  UNUSABLE,
  type UpstreamContext,
  UpstreamRequest,
} from '../upstream-request.ts';
import type { IdleStreams } from './idle-streams.ts';
import { ResponseReader } from './response-reader.ts';

/** Maximum idle time of a connection for a request that cannot be sent twice. */
const HTTP_IDLE_STREAM_UNSAFE_MS = 1_000;

export class Http1Upstream extends UpstreamRequest implements ByteReader, UpstreamAnswer {
  protected isBehind = false;
  readonly #idle: IdleStreams;
  readonly #response: ResponseReader;
  /** Whether the request body arrives as data without a length and is chunked here. */
  readonly #framesChunks: boolean;
  #opening: PendingStream | null = null;
  #stream: UpstreamStream | null = null;
  #isReused = false;
  /** Number of requests sent on the stream, including the current request once it is sent. */
  #ordinal = 0;

  constructor(
    idle: IdleStreams,
    context: UpstreamContext,
    service: Service,
    request: ServiceRequest,
    handler: ResponseHandler,
  ) {
    super(context, service, request, handler);
    this.#idle = idle;
    this.#response = new ResponseReader(request, handler);
    this.#framesChunks = request.bodyForm === 'data' && request.head.framing.kind === 'chunked';
  }

  protected get awaitsHead(): boolean {
    return this.#response.phase === 'head';
  }

  start(): void {
    const maxIdleMs = this.isRepeatable ? EDGE_LIMITS.HTTP_IDLE_STREAM_MS : HTTP_IDLE_STREAM_UNSAFE_MS;
    const isUpgrade = this.request.head.upgrade !== null;
    const { serviceName } = this.request;
    const idle = isUpgrade ? null : this.#idle.take(this.service, serviceName, this.context.now(), maxIdleMs);
    if (idle === null) {
      this.#openAnew();
      return;
    }
    this.#isReused = true;
    this.#ordinal = idle.requests;
    this.#begin(idle.stream);
  }

  #openAnew(): void {
    const { service, request } = this;
    const opening = service.upstream.open(streamHeadOf(service, request.serviceName), this);
    if (opening === null) this.fail(new Fault('TUNNEL_AWAY'));
    else if (this.#stream === null && !this.isOver) this.#opening = opening;
  }

  onOpened(stream: UpstreamStream): void {
    this.#opening = null;
    if (this.isOver) stream.reset(ABORTED);
    else this.#begin(stream);
  }

  onRefused(reason: StreamReason): void {
    this.#opening = null;
    this.fail(faultOfRefusal(reason));
  }

  #begin(stream: UpstreamStream): void {
    this.#stream = stream;
    stream.read(this);
    if (this.#stream !== stream) return;
    const head = Buffer.from(requestHeadFor(this.request.head, this.request.options), 'latin1');
    this.lastProgressMs = this.context.preciseNow();
    this.isSent = true;
    this.#ordinal += 1;
    this.request.recorder?.onSent(stream, this.#ordinal);
    let isFree = this.#send(stream, head, 0, head.length, true);
    const { waiting } = this;
    this.waiting = null;
    while (waiting !== null && waiting.length > 0) {
      const bytes = waiting.shift(waiting.length);
      isFree = this.#sendBody(stream, bytes, 0, bytes.length, false);
    }
    if (this.#framesChunks && this.requestDone) isFree = this.#sendLastChunk(stream);
    this.isBehind = !isFree;
    if (waiting !== null && isFree) this.handler.onRequestDrain();
  }

  // ---- the request's body ----

  writeBody(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    this.lastProgressMs = this.context.now();
    if (this.isOver) return true;
    this.request.recorder?.onRequestBody(bytes, start, end);
    if (this.#stream === null) {
      this.isBehind = true;
      return this.keepWaiting(bytes, start, end);
    }
    this.isBehind = !this.#sendBody(this.#stream, bytes, start, end, borrowed);
    return !this.isBehind;
  }

  endBody(trailers: readonly HeaderField[] = []): void {
    this.requestDone = true;
    this.requestTrailers = trailers;
    this.request.recorder?.onRequestEnd();
    this.lastProgressMs = this.context.now();
    if (this.#framesChunks && this.#stream !== null && !this.isOver) this.isBehind = !this.#sendLastChunk(this.#stream);
  }

  #sendBody(stream: UpstreamStream, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (!this.#framesChunks) return this.#send(stream, bytes, start, end, borrowed);
    const line = chunkLine(end - start);
    const dataAt = HEAD_ROOM_BYTES + line.length;
    const framed = Buffer.allocUnsafe(dataAt + (end - start) + CHUNK_END.length);
    framed.write(line, HEAD_ROOM_BYTES, 'latin1');
    framed.set(bytes.subarray(start, end), dataAt);
    framed.write(CHUNK_END, framed.length - CHUNK_END.length, 'latin1');
    return this.#send(stream, framed, HEAD_ROOM_BYTES, framed.length, true);
  }

  #sendLastChunk(stream: UpstreamStream): boolean {
    const text = lastChunk(this.requestTrailers.map(({ name, value }) => [name, value]));
    const bytes = Buffer.from(text, 'latin1');
    return this.#send(stream, bytes, 0, bytes.length, false);
  }

  #send(stream: UpstreamStream, bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    this.#count(end - start, 0);
    return stream.write(bytes, start, end, borrowed);
  }

  onDrain(): void {
    this.isBehind = false;
    this.lastProgressMs = this.context.now();
    this.handler.onRequestDrain();
  }

  // ---- the response ----

  resume(): void {
    this.#stream?.resume();
  }

  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    this.#count(0, end - start);
    this.answered();
    const response = this.#response;
    let at = start;
    response.goesOn = true;
    // The response's handler may cancel the request in the middle of the data.
    while (at < end && !this.isOver && (response.phase === 'head' || response.phase === 'body')) {
      at = response.take(bytes, at, end, borrowed);
    }
    if (this.isOver) return true;
    if (response.phase === 'malformed') this.fail(new Fault('LOCAL_MALFORMED', { reason: response.problem }));
    else if (response.phase === 'switched') this.#switch(bytes, at, end);
    else {
      if (!this.handler.onTurn()) response.goesOn = false;
      if (response.phase === 'complete') this.#finish(at === end);
    }
    return response.goesOn;
  }

  #switch(bytes: Buffer, start: number, end: number): void {
    const { head } = this.#response;
    const stream = this.#stream;
    this.#stream = null;
    this.isOver = true;
    if (stream === null || head === null) return;
    const { recorder } = this.request;
    recorder?.onResponseHead(head, 'chunks');
    recorder?.finish(this.context.now(), 'complete');
    this.handler.onUpgrade(head, stream, bytes, start, end);
  }

  onEnd(): void {
    if (this.#response.isUntilClose) this.#finish(true);
    else this.#broken('connection closed');
  }

  onReset(reason: StreamReason): void {
    if (reason.code === 'carrier-lost') this.#broken('the connection to the client was lost');
    else this.#broken('connection reset');
  }

  /** Handles a stream that ended before the response. A service that closed an idle connection has not seen the request. */
  #broken(reason: string): void {
    const stream = this.#stream;
    this.#stream = null;
    if (this.isOver) return;
    stream?.reset(UNUSABLE);
    if (this.#isReused && !this.hasAnswer && this.isRepeatable && this.isConnected) {
      this.#isReused = false;
      this.#ordinal = 0;
      this.#openAnew();
    } else this.fail(new Fault('LOCAL_CLOSED', { reason }));
  }

  // ---- ending ----

  #finish(isClean: boolean): void {
    const nowMs = this.context.now();
    const stream = this.#stream;
    this.#stream = null;
    this.isOver = true;
    if (stream !== null) {
      if (!isClean || !this.requestDone) stream.reset(UNUSABLE);
      else this.#keep(stream, nowMs);
    }
    this.request.recorder?.finish(nowMs, 'complete');
    this.handler.onEnd(this.requestDone);
  }

  #keep(stream: UpstreamStream, nowMs: number): void {
    const { service, request } = this;
    const kept = { service, serviceName: request.serviceName, stream, requests: this.#ordinal, sinceMs: nowMs };
    if (this.#response.head?.keepAlive) this.#idle.give(kept);
    else this.#idle.letClose(kept);
  }

  protected letGo(reason: StreamReason): void {
    this.#opening?.reset(reason);
    this.#opening = null;
    this.#stream?.reset(reason);
    this.#stream = null;
  }

  #count(toClient: number, toVisitor: number): void {
    this.service.counters.addBytes(toClient + toVisitor);
    this.context.onBytes(toClient, toVisitor);
  }
}
