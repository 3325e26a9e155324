// One request and its response over one stream to the local service. It knows HTTP/1.1 towards the service and nothing of the
// visitor, who may speak HTTP/1.1, HTTP/2, or be a replay.
import { Fault } from '@tunnel/errors';
import type { ByteReader, MuxSession, MuxStream, OpenAnswer, PendingStream } from '@tunnel/mux';
import { type StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../limits.ts';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { Asker } from './asker.ts';
import { ABORTED, CallState, UNUSABLE } from './call-state.ts';
import { faultOfRefusal } from './refusal-fault.ts';
import { ResponseReader } from './response-reader.ts';
import type { CallContext, ServiceCall, ServiceRequest } from './service-call.ts';

export class Exchange extends CallState implements ServiceCall, ByteReader, OpenAnswer {
  protected isBehind = false;
  readonly #response: ResponseReader;
  #mux: MuxSession | null = null;
  #opening: PendingStream | null = null;
  #stream: MuxStream | null = null;
  #isReused = false;

  constructor(context: CallContext, tunnel: Tunnel, request: ServiceRequest, asker: Asker) {
    super(context, tunnel, request, asker);
    this.#response = new ResponseReader(request, asker);
  }

  protected get awaitsHead(): boolean {
    return this.#response.phase === 'head';
  }

  start(): void {
    const { idle, now } = this.context;
    const maxIdleMs = this.isRepeatable ? EDGE_LIMITS.HTTP_IDLE_STREAM_MS : EDGE_LIMITS.HTTP_IDLE_STREAM_UNSAFE_MS;
    const stream = this.request.head.upgrade === null ? idle.take(this.tunnel, now(), maxIdleMs) : null;
    this.#mux = this.tunnel.session.mux;
    if (stream === null) {
      this.#openAnew();
      return;
    }
    this.#isReused = true;
    this.#begin(stream);
  }

  #openAnew(): void {
    this.#mux = this.tunnel.session.mux;
    // The visitor's address is in the head; the stream outlives this visitor.
    const head = { tunnelId: this.tunnel.tunnelId, visitor: '' };
    const opening = this.#mux?.open(head, this) ?? null;
    if (opening === null) this.fail(new Fault('TUNNEL_AWAY'));
    else if (this.#stream === null && !this.isOver) this.#opening = opening;
  }

  onOpened(stream: MuxStream): void {
    this.#opening = null;
    if (this.isOver) stream.reset(ABORTED);
    else this.#begin(stream);
  }

  onRefused(reason: StreamReason): void {
    this.#opening = null;
    this.fail(faultOfRefusal(reason));
  }

  #begin(stream: MuxStream): void {
    this.#stream = stream;
    stream.read(this);
    if (this.#stream !== stream) return;
    const head = Buffer.from(this.request.text, 'latin1');
    this.lastProgressMs = this.context.now();
    this.isSent = true;
    this.#count(head.length, 0);
    let isFree = stream.write(head, 0, head.length, true);
    const { waiting } = this;
    this.waiting = null;
    while (waiting !== null && waiting.length > 0) {
      const bytes = waiting.shift(waiting.length);
      this.#count(bytes.length, 0);
      isFree = stream.write(bytes, 0, bytes.length, false);
    }
    this.isBehind = !isFree;
    if (waiting !== null && isFree) this.asker.onBodyDrain();
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
    this.#count(end - start, 0);
    this.isBehind = !this.#stream.write(bytes, start, end, borrowed);
    return !this.isBehind;
  }

  endBody(): void {
    this.requestDone = true;
    this.request.recorder?.onRequestEnd();
    this.lastProgressMs = this.context.now();
  }

  onDrain(): void {
    this.isBehind = false;
    this.lastProgressMs = this.context.now();
    this.asker.onBodyDrain();
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
    // The asker may leave in the middle.
    while (at < end && !this.isOver && (response.phase === 'head' || response.phase === 'body')) {
      at = response.take(bytes, at, end, borrowed);
    }
    if (this.isOver) return true;
    if (response.phase === 'malformed') this.fail(new Fault('LOCAL_MALFORMED', { reason: response.problem }));
    else if (response.phase === 'switched') this.#switch(bytes, at, end);
    else {
      this.asker.onTurn();
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
    this.asker.onSwitched(head, stream, bytes, start, end);
  }

  onEnd(): void {
    if (this.#response.isUntilClose) this.#finish(true);
    else this.#broken('it closed the connection');
  }

  onReset(reason: StreamReason): void {
    if (reason.code === 'carrier-lost') this.#broken('the connection to the client was lost');
    else this.#broken('it reset the connection');
  }

  /** The stream ended before the response did. A service that hung up on an idle connection did not see the request. */
  #broken(reason: string): void {
    const stream = this.#stream;
    this.#stream = null;
    if (this.isOver) return;
    stream?.reset(UNUSABLE);
    if (this.#isReused && !this.hasAnswer && this.isRepeatable && this.isAtHand) {
      this.#isReused = false;
      this.#openAnew();
    } else this.fail(new Fault('LOCAL_CLOSED', { reason }));
  }

  // ---- the end ----

  #finish(isClean: boolean): void {
    const { idle, now } = this.context;
    const stream = this.#stream;
    this.#stream = null;
    this.isOver = true;
    if (stream !== null && this.#mux !== null) {
      if (!isClean || !this.requestDone) stream.reset(UNUSABLE);
      else if (this.#response.head?.keepAlive) idle.give(this.tunnel, this.#mux, stream, now());
      else idle.letClose(this.tunnel, this.#mux, stream, now());
    }
    this.request.recorder?.finish(now(), 'complete');
    this.asker.onDone(this.requestDone);
  }

  protected letGo(reason: StreamReason): void {
    this.#opening?.reset(reason);
    this.#opening = null;
    this.#stream?.reset(reason);
    this.#stream = null;
  }

  #count(toClient: number, toVisitor: number): void {
    this.tunnel.counters.bytes += toClient + toVisitor;
    this.context.onBytes(this.tunnel, toClient, toVisitor);
  }
}
