// One HTTP/1.1 connection of a visitor: requests one after the other, each routed anew, each answered before the next is read.
import { parseRequestHead, type RequestHead, requestHeadFor, scannerOf } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { type ByteEnd, ByteQueue, type ByteReader, type MuxStream, type Splice, splice } from '@tunnel/mux';
import { LIMITS, type StreamReason } from '@tunnel/protocol';
import type { Tunnel } from '../../pool/tunnel.ts';
import { HeadReader } from './head-reader.ts';
import { Http1Response, type RespondingVisitor } from './http1-response.ts';
import { isLocalAnswer } from './local-answer.ts';
import { refusalCodeOf } from './refusal-code.ts';
import { RequestBody } from './request-body.ts';
import { callService, requestFormOf, type ServiceCall } from './service-call.ts';
import type { Dispatch, Visitor, VisitorFacts, VisitorOwner } from './visitor.ts';
import { VisitorWriter } from './visitor-writer.ts';

type Phase =
  /** Waits for a head, or reads one. */
  | 'head'
  /** Passes the request's body on. */
  | 'body'
  /** The request is complete, its response is not. */
  | 'answering'
  /** After 101: bytes both ways. */
  | 'bridge'
  /** We have said our last word; what still comes is thrown away, so that the visitor can read it. */
  | 'lingering'
  | 'closed';

const GONE: StreamReason = { code: 'cancelled', text: 'the connection is over' };

export class Http1Visitor implements ByteReader, RespondingVisitor, Visitor, Dispatch {
  readonly facts: VisitorFacts;
  /** What this connection was dispatched to last, and is counted for. */
  tunnel: Tunnel | null = null;
  readonly #end: ByteEnd;
  readonly #owner: VisitorOwner;
  readonly #out: VisitorWriter;
  readonly #heads = new HeadReader();
  #phase: Phase = 'head';
  #exchange: ServiceCall | null = null;
  #body: RequestBody | null = null;
  #goOn = true;
  /** Bytes of pipelined requests that wait for their turn; their sender is paused. */
  #rest: ByteQueue | null = null;
  #bridge: Splice | null = null;
  /** In 'lingering': which of the two sides has nothing more to say. */
  #saidAll = false;
  #visitorEnded = false;
  #startedMs = 0;
  #deadlineMs: number;

  constructor(end: ByteEnd, facts: VisitorFacts, owner: VisitorOwner) {
    this.#end = end;
    this.facts = facts;
    this.#owner = owner;
    this.#out = new VisitorWriter(end);
    this.#deadlineMs = owner.now() + owner.headTimeoutMs;
  }

  start(): void {
    this.#end.read(this);
  }

  get isDraining(): boolean {
    return this.#owner.isDraining;
  }

  get requestDone(): boolean {
    return this.#phase === 'answering';
  }

  // ---- reading ----

  onData(bytes: Buffer, start: number, end: number, lend: boolean): boolean {
    let at = start;
    this.#goOn = true;
    while (at < end) {
      if (this.#phase === 'head') at = this.#takeHead(bytes, at, end);
      else if (this.#phase === 'body') at = this.#takeBody(bytes, at, end, lend);
      else if (this.#phase === 'answering') {
        this.#keepRest(bytes, at, end);
        return false;
      } else return true;
    }
    return this.#goOn;
  }

  #takeHead(bytes: Buffer, start: number, end: number): number {
    if (!this.#heads.begun) {
      this.#startedMs = this.#owner.now();
      this.#deadlineMs = this.#startedMs + this.#owner.headTimeoutMs;
    }
    const reading = this.#heads.read(bytes, start, end);
    if (reading.kind === 'more') return end;
    if (reading.kind === 'problem') return this.#refuse(reading.status, reading.reason, end);
    const head = parseRequestHead(reading.text);
    if (head.kind === 'problem') return this.#refuse(head.status, head.reason, end);
    this.#begin(head);
    return reading.next;
  }

  #begin(head: RequestHead): void {
    const scanner = scannerOf(head.framing);
    const hasBody = scanner !== null;
    this.#phase = hasBody ? 'body' : 'answering';
    this.#body = null;
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    const response = new Http1Response(this, this.#out, head);
    const route = this.#owner.route(this, head);
    if (isLocalAnswer(route)) {
      response.answer(route);
      return;
    }
    const rewrite = route.http?.hostHeader ?? null;
    const text = requestHeadFor(head, {
      visitorAddress: this.facts.address,
      proto: this.facts.scheme,
      hostHeader: rewrite === null ? 'keep' : { rewrite },
    });
    const recorder = this.#owner.capture(route, head, this.#startedMs);
    const exchange = callService(this.#owner, route, { head, text, hasBody, recorder }, response);
    this.#exchange = exchange;
    const bodyForm = requestFormOf(route);
    const body = bodyForm === 'chunks' ? scanner : scannerOf(head.framing, bodyForm);
    if (body !== null) this.#body = new RequestBody(body, exchange);
    exchange.start();
  }

  #takeBody(bytes: Buffer, start: number, end: number, lend: boolean): number {
    const step = this.#body?.push(bytes, start, end, lend);
    if (step === undefined) return end;
    if (step.kind === 'bad') return this.#refuse(400, step.reason, end);
    if (!step.goOn) this.#goOn = false;
    if (step.kind === 'more') return end;
    if (this.#phase === 'body') {
      this.#phase = 'answering';
      this.#exchange?.endBody(this.#body?.trailers);
    }
    return step.next;
  }

  /** What cannot be read ends the connection: nobody knows where the next request would begin. */
  #refuse(status: number, reason: string, end: number): number {
    this.#exchange?.abort();
    this.#exchange = null;
    new Http1Response(this, this.#out, null).answer({
      fault: new Fault(refusalCodeOf(status), { reason }),
    });
    return end;
  }

  #keepRest(bytes: Buffer, start: number, end: number): void {
    this.#rest ??= new ByteQueue();
    this.#rest.push(bytes, start, end);
  }

  // ---- from the response ----

  onAnswered(status: number): void {
    const wholeMs = this.#owner.now() - this.#startedMs;
    // While a body is on its way the time is the visitor's.
    const serviceMs = this.#body === null ? (this.#exchange?.serviceMs ?? null) : null;
    this.#owner.onResponse(status, wholeMs, serviceMs === null ? null : wholeMs - serviceMs);
  }

  onResponded(keepAlive: boolean): void {
    this.#exchange = null;
    // Nobody is waited for when the edge shuts down; what was asked already is still answered.
    const ends = !keepAlive || (this.#owner.isDraining && this.#rest === null);
    if (ends) this.#lastWord();
    else this.#next();
  }

  onCutOff(): void {
    this.#close();
  }

  onSwitched(stream: MuxStream): void {
    const { tunnel } = this;
    this.#exchange = null;
    this.#phase = 'bridge';
    const early = this.#rest;
    this.#rest = null;
    while (early !== null && early.length > 0) {
      const piece = early.shift(early.length);
      stream.write(piece, 0, piece.length, false);
    }
    const bridge = splice(this.#end, stream, {
      onBytes: (direction, count) => {
        if (tunnel === null) return;
        tunnel.counters.bytes += count;
        if (direction === 'a-to-b') this.#owner.onBytes(tunnel, count, 0);
        else this.#owner.onBytes(tunnel, 0, count);
      },
      onDone: () => this.#closed(),
    });
    if (!this.#isClosed()) this.#bridge = bridge;
  }

  onBodyDrain(): void {
    if (this.#rest === null && (this.#phase === 'body' || this.#phase === 'answering')) this.#end.resume();
  }

  /** The next request, which may have come already. */
  #next(): void {
    this.#phase = 'head';
    this.#deadlineMs = this.#owner.now() + LIMITS.HTTP_KEEP_ALIVE_MS;
    const rest = this.#rest;
    this.#rest = null;
    let goOn = true;
    while (rest !== null && rest.length > 0) {
      const piece = rest.shift(rest.length);
      if (this.#rest === null) goOn = this.onData(piece, 0, piece.length, false);
      else this.#keepRest(piece, 0, piece.length);
    }
    if (goOn && this.#rest === null) this.#end.resume();
  }

  // ---- the visitor ----

  /** The visitor has taken what was written. */
  onDrain(): void {
    this.#exchange?.resume();
  }

  onEnd(): void {
    // Before the response has ended a FIN is an abort: the service is told, and nothing more is said.
    if (this.#phase !== 'head' && this.#phase !== 'lingering') return this.#close();
    this.#visitorEnded = true;
    if (this.#phase === 'head') this.#lastWord();
    else if (this.#saidAll) this.#closed();
  }

  onReset(): void {
    this.#exchange?.abort();
    this.#closed();
  }

  // ---- time and the end ----

  /** Once a second. */
  tick(nowMs: number): void {
    this.#exchange?.tick(nowMs);
    if (nowMs < this.#deadlineMs) return;
    if (this.#phase === 'head' && this.#heads.begun) this.#refuse(408, '', 0);
    else if (this.#phase === 'head') this.#lastWord();
    else if (this.#phase === 'lingering') this.#close();
  }

  /** The edge is shutting down: an idle connection ends now, a busy one after its response. */
  shutDown(): void {
    if (this.#phase === 'head' && !this.#heads.begun) this.#lastWord();
  }

  /** Says nothing more, and leaves the visitor time to read it. */
  #lastWord(): void {
    if (this.#isClosed()) return;
    this.#phase = 'lingering';
    this.#rest = null;
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#end.end(() => {
      this.#saidAll = true;
      this.#deadlineMs = this.#owner.now() + LIMITS.HTTP_LINGER_MS;
      if (this.#visitorEnded) this.#closed();
    });
    this.#end.resume();
  }

  /** Cuts the connection off, whatever it is doing. */
  close(): void {
    this.#close();
  }

  #close(): void {
    this.#exchange?.abort();
    if (this.#bridge !== null) this.#bridge.reset(GONE);
    else this.#end.reset(GONE);
    this.#closed();
  }

  #closed(): void {
    if (this.#isClosed()) return;
    this.#phase = 'closed';
    this.#exchange = null;
    this.#rest = null;
    this.#owner.leave(this);
    this.#owner.onClosed(this);
  }

  #isClosed(): boolean {
    return this.#phase === 'closed';
  }
}
