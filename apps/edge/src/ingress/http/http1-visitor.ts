// One HTTP/1.1 connection of a visitor: requests one after the other, each routed anew, each answered before the next is read.
import { parseRequestHead, type RequestHead } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { type ByteDuplex, ByteQueue, type ByteReader, type MuxStream, type Splice } from '@tunnel/mux';
import { type StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../limits.ts';
import type { Tunnel } from '../../pool/tunnel.ts';
import { bridge } from './bridge.ts';
import { HeadReader } from './head-reader.ts';
import { Http1Calls } from './http1-calls.ts';
import { Http1Response, type RespondingVisitor } from './http1-response.ts';
import { Linger } from './linger.ts';
import { isLocalAnswer } from './local-answer.ts';
import { refusalCodeOf } from './refusal-code.ts';
import { hasBodyOf } from './service-call.ts';
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
  isServed = false;
  readonly calls: Http1Calls;
  readonly #end: ByteDuplex;
  readonly #owner: VisitorOwner;
  readonly #out: VisitorWriter;
  readonly #heads = new HeadReader();
  #phase: Phase = 'head';
  #goOn = true;
  /** Bytes of pipelined requests that wait for their turn; their sender is paused. */
  #rest: ByteQueue | null = null;
  #bridge: Splice | null = null;
  /** In 'lingering'. */
  #linger: Linger | null = null;
  #visitorEnded = false;
  #deadlineMs: number;

  constructor(end: ByteDuplex, facts: VisitorFacts, owner: VisitorOwner) {
    this.#end = end;
    this.facts = facts;
    this.#owner = owner;
    this.#out = new VisitorWriter(end);
    this.calls = new Http1Calls(this, owner);
    this.#deadlineMs = owner.now() + owner.headTimeoutMs;
  }

  start(): void {
    this.#end.read(this);
  }

  get requestDone(): boolean {
    return this.#phase === 'answering';
  }

  // ---- reading ----

  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    let at = start;
    this.#goOn = true;
    while (at < end) {
      if (this.#phase === 'head') at = this.#takeHead(bytes, at, end);
      else if (this.#phase === 'body') at = this.#takeBody(bytes, at, end, borrowed);
      else if (this.#phase === 'answering') {
        this.#keepRest(bytes, at, end);
        return false;
      } else {
        this.#linger?.onBytes(this.#owner.now());
        return true;
      }
    }
    return this.#goOn;
  }

  #takeHead(bytes: Buffer, start: number, end: number): number {
    if (!this.#heads.begun) {
      this.calls.startedMs = this.#owner.now();
      this.#deadlineMs = this.calls.startedMs + this.#owner.headTimeoutMs;
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
    this.#phase = hasBodyOf(head.framing) ? 'body' : 'answering';
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    const response = new Http1Response(this, this.#out, head);
    const route = this.calls.route(head);
    if (isLocalAnswer(route)) response.answer(route);
    else this.calls.begin(route, head, response);
  }

  #takeBody(bytes: Buffer, start: number, end: number, borrowed: boolean): number {
    const step = this.calls.pushBody(bytes, start, end, borrowed);
    if (step === undefined) return end;
    if (step.kind === 'bad') return this.#refuse(400, step.reason, end);
    if (!step.goOn) this.#goOn = false;
    if (step.kind === 'more') return end;
    if (this.#phase === 'body') {
      this.#phase = 'answering';
      this.calls.endBody();
    }
    return step.next;
  }

  /** What cannot be read ends the connection: nobody knows where the next request would begin. */
  #refuse(status: number, reason: string, end: number): number {
    this.calls.abort();
    const fault = new Fault(refusalCodeOf(status), { reason });
    new Http1Response(this, this.#out, null).answer({ fault });
    return end;
  }

  #keepRest(bytes: Buffer, start: number, end: number): void {
    this.#rest ??= new ByteQueue();
    this.#rest.push(bytes, start, end);
  }

  // ---- from the response ----

  onResponded(keepAlive: boolean): void {
    this.calls.done();
    // Nobody is waited for when the edge shuts down; what was asked already is still answered.
    const ends = !keepAlive || (this.#owner.isDraining && this.#rest === null);
    if (ends) this.#lastWord();
    else this.#next();
  }

  onCutOff(): void {
    this.close();
  }

  onSwitched(stream: MuxStream): void {
    const early = this.#rest;
    this.calls.switched();
    this.#phase = 'bridge';
    this.#rest = null;
    const { tunnel } = this;
    const joined = bridge(this.#end, stream, { owner: this.#owner, tunnel, early, onDone: () => this.#closed() });
    if (!this.#isClosed()) this.#bridge = joined;
  }

  onBodyDrain(): void {
    if (this.#rest === null && (this.#phase === 'body' || this.#phase === 'answering')) this.#end.resume();
  }

  /** The next request, which may have come already. */
  #next(): void {
    this.#phase = 'head';
    this.#deadlineMs = this.#owner.now() + EDGE_LIMITS.HTTP_KEEP_ALIVE_MS;
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
    this.calls.resume();
  }

  onEnd(): void {
    // Before the response has ended a FIN is an abort: the service is told, and nothing more is said.
    if (this.#phase !== 'head' && this.#phase !== 'lingering') return this.close();
    this.#visitorEnded = true;
    if (this.#phase === 'head') this.#lastWord();
    else if (this.#linger?.saidAll) this.#closed();
  }

  onReset(): void {
    this.calls.abort();
    this.#closed();
  }

  // ---- time and the end ----

  tick(nowMs: number): void {
    this.calls.tick(nowMs);
    if (this.#linger?.isOver(nowMs)) this.close();
    if (this.#phase !== 'head' || nowMs < this.#deadlineMs) return;
    if (this.#heads.begun) this.#refuse(408, '', 0);
    else this.#lastWord();
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
    const linger = new Linger();
    this.#linger = linger;
    this.#end.end(() => {
      linger.onSaidAll(this.#owner.now());
      if (this.#visitorEnded) this.#closed();
    });
    this.#end.resume();
  }

  /** Cuts the connection off, whatever it is doing. */
  close(): void {
    this.calls.abort();
    if (this.#bridge !== null) this.#bridge.reset(GONE);
    else this.#end.reset(GONE);
    this.#closed();
  }

  #closed(): void {
    if (this.#isClosed()) return;
    this.#phase = 'closed';
    this.calls.done();
    this.#rest = null;
    this.#owner.leave(this);
    this.#owner.onClosed(this);
  }

  #isClosed(): boolean {
    return this.#phase === 'closed';
  }
}
