// One HTTP/1.1 connection of a visitor: requests one after the other, each routed anew, each taken up when the answer before it has left. It is
// read all the time, for a visitor that is not read cannot be heard leaving; only a body that its service does not take stops it.
import { type ConnectionState, parseRequestHead, type RequestHead, scannerOf } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { type ByteReader, type MuxStream, type Splice, splice } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../../limits.ts';
import { Lease } from '../../../routing/balancer.ts';
import { isOwnAnswer, type RouteDecision, type VisitorInfo } from '../../../routing/http-router.ts';
import type { Tunnel } from '../../../routing/tunnel.ts';
import { HeadReader } from '../../../upstream/http1/head-reader.ts';
import { hasBodyOf } from '../../../upstream/upstream-request.ts';
import { refusalCodeOf } from '../own-answer.ts';
import { type LeaseHolder, ProxiedRequest } from '../proxied-request.ts';
import type { Visitor, VisitorDuplex, VisitorOwner } from '../visitor.ts';
import { EarlyBytes } from './early-bytes.ts';
import { describePhase, type Phase } from './http1-phase.ts';
import { Http1Response, type RespondingVisitor } from './http1-response.ts';
import { Http1Writer } from './http1-writer.ts';
import { RequestBody } from './request-body.ts';
import { Linger, Stalls } from './visitor-waits.ts';

const GONE: StreamReason = { code: 'cancelled', text: 'the connection is over' };

export class Http1Visitor implements ByteReader, RespondingVisitor, Visitor, LeaseHolder {
  readonly request: ProxiedRequest;
  readonly #info: VisitorInfo;
  readonly #end: VisitorDuplex;
  readonly #owner: VisitorOwner;
  readonly #out: Http1Writer;
  /** Of the whole connection. */
  readonly #lease: Lease;
  readonly #heads = new HeadReader();
  #phase: Phase = 'head';
  #body: RequestBody | null = null;
  /** Of the request that is being answered. */
  #response: Http1Response | null = null;
  #isAbandoned = false;
  #hasBody = false;
  #goOn = true;
  /** The visitor is not read. */
  #isPaused = false;
  /** What came behind the request that is being answered. */
  #early: EarlyBytes | null = null;
  #isTakingEarly = false;
  /** The request of which it is being asked where it goes. */
  #deciding: RequestHead | null = null;
  #readBytes = 0;
  readonly #stalls = new Stalls();
  #splice: Splice | null = null;
  /** In 'lingering'. */
  #linger: Linger | null = null;
  #visitorEnded = false;
  #deadlineMs: number;
  /** When its last request began or ended. */
  #activeAtMs: number;

  constructor(end: VisitorDuplex, info: VisitorInfo, owner: VisitorOwner) {
    this.#end = end;
    this.#info = info;
    this.#owner = owner;
    this.#out = new Http1Writer(end, () => this.#onOverrun());
    this.#lease = new Lease();
    this.request = new ProxiedRequest(owner, this);
    this.#activeAtMs = this.#now();
    this.#deadlineMs = this.#activeAtMs + owner.headTimeoutMs;
  }

  // ---- what is seen from outside ----

  get isIdle(): boolean {
    return this.#phase === 'head' || this.#phase === 'lingering';
  }

  get activeAtMs(): number {
    return this.#activeAtMs;
  }

  describe(): ConnectionState {
    const isReadingHead = this.#phase === 'head' && this.#heads.begun;
    const state = describePhase(this.#phase, this.#isPaused, this.queuedBytes);
    const waitsFor = isReadingHead ? 'the rest of a request head' : state.waitsFor;
    return { ...state, waitsFor, tunnelId: this.#lease.member?.tunnelId ?? null };
  }

  #now(): number {
    return this.#owner.services.now();
  }

  get endsAfterAnswer(): boolean {
    return this.#owner.isDraining || this.hasLostBytes;
  }

  get hasLostBytes(): boolean {
    return this.#early?.isLost ?? false;
  }

  get queuedBytes(): number {
    return this.#end.queuedBytes;
  }

  leaseFor(): Lease {
    return this.#lease;
  }

  onLeased(): void {}

  start(): void {
    this.#end.read(this);
  }

  get requestDone(): boolean {
    return this.#phase === 'answering';
  }

  // ---- reading ----

  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    this.#readBytes += end - start;
    this.#goOn = true;
    const at = this.#take(bytes, start, end, borrowed);
    if (at < end) this.#keep(bytes, at, end);
    // After our last word nothing is held back, whatever a service may have left lying.
    if (!this.#goOn && this.#phase !== 'lingering') this.#isPaused = true;
    return !this.#isPaused;
  }

  /** Returns where it stopped: what is behind must wait, or is not wanted. */
  #take(bytes: Buffer, start: number, end: number, borrowed: boolean): number {
    let at = start;
    while (at < end) {
      if (this.#phase === 'head') at = this.#takeHead(bytes, at, end);
      else if (this.#phase === 'body') at = this.#takeBody(bytes, at, end, borrowed);
      else return at;
    }
    return at;
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    const phase = this.#phase;
    if (phase === 'lingering') return this.#linger?.onBytes(this.#now());
    if (phase === 'cutting' || phase === 'closed') return;
    // Of a body nothing may be lost; while it has no service it has no credit.
    const isBody = phase === 'deciding' && this.#hasBody;
    this.#early ??= new EarlyBytes();
    if (isBody) this.#goOn = this.#early.push(bytes, start, end);
    else this.#early.pushOrLose(bytes, start, end);
  }

  #takeHead(bytes: Buffer, start: number, end: number): number {
    if (!this.#heads.begun) {
      this.request.startedMs = this.#owner.services.preciseNow();
      this.#deadlineMs = this.request.startedMs + this.#owner.headTimeoutMs;
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
    this.#phase = 'deciding';
    this.#hasBody = hasBodyOf(head.framing);
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#activeAtMs = this.request.startedMs;
    const decision = this.#owner.route(this.#info, head);
    if (decision instanceof Promise) this.#await(decision, head);
    else this.#decided(decision, head);
  }

  #await(decision: Promise<RouteDecision>, head: RequestHead): void {
    this.#deciding = head;
    this.#deadlineMs = this.#now() + EDGE_LIMITS.HTTP_ROUTE_TIMEOUT_MS;
    const decided = (made: RouteDecision): void => {
      // The visitor may have left meanwhile, or its time be over.
      if (this.#deciding !== head) return;
      try {
        this.#decidedLate(made, head);
      } catch (error) {
        this.abandon(error, 'visitor.decided');
      }
    };
    decision.then(decided, (error: unknown) => decided({ fault: Fault.from(error) }));
  }

  #decidedLate(decision: RouteDecision, head: RequestHead): void {
    this.#deciding = null;
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#decided(decision, head);
    this.#takeEarly();
  }

  #decided(decision: RouteDecision, head: RequestHead): void {
    this.#phase = this.#hasBody ? 'body' : 'answering';
    const response = new Http1Response(this, this.#out, head);
    this.#response = response;
    const leased = isOwnAnswer(decision) ? decision : this.request.lease(decision, head);
    if (isOwnAnswer(leased)) response.answer(leased);
    else this.#ask(leased, head, response);
  }

  #ask(member: Tunnel, head: RequestHead, response: Http1Response): void {
    // Chunks pass as they came where the service speaks HTTP/1.1, too.
    const form = member.http?.localProtocol === 'h2c' ? 'data' : 'chunks';
    const scanner = scannerOf(head.framing, form);
    this.#body = scanner === null ? null : new RequestBody(scanner, form);
    this.request.begin(member, head, response, this.#body);
  }

  #takeBody(bytes: Buffer, start: number, end: number, borrowed: boolean): number {
    const body = this.#body;
    // Nobody wants it.
    if (body === null) return end;
    const step = body.push(bytes, start, end, borrowed);
    if (step.kind === 'bad') return this.#refuse(400, step.reason, end);
    if (!step.goOn) this.#goOn = false;
    if (step.kind === 'more') return end;
    if (this.#phase === 'body') {
      this.#phase = 'answering';
      this.request.endBody(body.trailers);
    }
    return step.next;
  }

  /** What cannot be read ends the connection: nobody knows where the next request would begin. */
  #refuse(status: number, reason: string, end: number): number {
    this.request.abort();
    this.#body = null;
    const fault = new Fault(refusalCodeOf(status), { reason });
    this.#response = new Http1Response(this, this.#out, null);
    this.#response.answer({ fault });
    return end;
  }

  // ---- from the response ----

  onServed(): void {
    this.#lease.isServed = true;
  }

  onResponded(keepAlive: boolean): void {
    if (this.#isClosed()) return;
    this.#body = null;
    this.#response = null;
    this.request.done();
    // What its service has not taken of a body may still lie in the memory that the next request would be read into.
    if (!keepAlive || this.#isPaused) this.#lastWord();
    else if (this.#out.isFree) this.#next();
    else this.#phase = 'sending';
  }

  onCutOff(looksWhole: boolean): void {
    if (!looksWhole) return this.close();
    this.request.abort();
    this.#phase = 'cutting';
    this.#early = null;
    this.#deadlineMs = this.#now() + EDGE_LIMITS.HTTP_CUT_DELAY_MS;
    this.#resume();
  }

  /** After 101: bytes both ways between the visitor and the local service, until both have ended. */
  onUpgraded(stream: MuxStream): void {
    const early = this.#early;
    const { member } = this.#lease;
    this.#body = null;
    this.request.detach();
    this.#phase = 'upgraded';
    this.#early = null;
    while (early !== null && early.length > 0) {
      const piece = early.shift();
      stream.write(piece, 0, piece.length, false);
    }
    const joined = splice(this.#end, stream, {
      onBytes: (direction, count) => this.#countUpgraded(member, direction === 'a-to-b', count),
      onDone: () => this.#closed(),
      abandon: (error, where) => this.abandon(error, where),
    });
    if (!this.#isClosed()) this.#splice = joined;
  }

  #countUpgraded(member: Tunnel | null, isToClient: boolean, count: number): void {
    if (member === null) return;
    member.counters.addBytes(count);
    this.#owner.services.onBytes(isToClient ? count : 0, isToClient ? 0 : count);
  }

  onRequestDrain(): void {
    if (this.#phase === 'body' || this.#phase === 'answering') this.#resume();
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#end.resume();
  }

  /** The next request, which may have come already. */
  #next(): void {
    // Nobody is waited for when the edge shuts down; what was asked already is still answered.
    const isLast = this.#owner.isDraining && (this.#early?.length ?? 0) === 0;
    if (isLast || this.hasLostBytes) return this.#lastWord();
    this.#phase = 'head';
    this.#activeAtMs = this.#now();
    this.#deadlineMs = this.#activeAtMs + EDGE_LIMITS.HTTP_KEEP_ALIVE_MS;
    this.#takeEarly();
  }

  #takeEarly(): void {
    const early = this.#early;
    // What is being taken goes on by itself.
    if (early === null || early.isLost || this.#isTakingEarly) return;
    this.#isTakingEarly = true;
    this.#goOn = true;
    let isStopped = false;
    while (!isStopped && early.length > 0 && this.#early === early) {
      const piece = early.shift();
      const at = this.#take(piece, 0, piece.length, false);
      isStopped = at < piece.length;
      if (isStopped) early.putBack(piece.subarray(at));
    }
    this.#isTakingEarly = false;
    if (early.length === 0 && this.#early === early) this.#early = null;
    if (this.#goOn) this.#resume();
  }

  // ---- the visitor ----

  /** The visitor has taken what was written. */
  onDrain(): void {
    this.#out.onDrain();
    if (this.#phase === 'sending') this.#next();
    else this.request.resume();
  }

  onEnd(): void {
    this.#visitorEnded = true;
    if (this.#phase === 'head' || this.#phase === 'sending') this.#lastWord();
    // Before the response has ended a FIN is an abort: the service is told, and nothing more is said.
    else if (this.#phase !== 'lingering') this.close();
    else if (this.#linger?.saidAll) this.#closed();
  }

  onReset(): void {
    this.request.abort();
    this.#closed();
  }

  // ---- time and the end ----

  /** Once with an answer, where nothing of one is out; the second time there is nobody left to ask. */
  abandon(error: unknown, where: string): void {
    const isFirst = !this.#isAbandoned;
    this.#isAbandoned = true;
    try {
      this.#owner.report(error, where);
      this.request.giveUp();
      if (isFirst && this.#awaitsAnswer(where)) this.#answerInternal();
      else this.close();
    } catch {
      try {
        this.#end.reset(GONE);
      } finally {
        this.#closed();
      }
    }
  }

  /** An idle connection has asked for nothing: an answer now would be taken for that to its next request. */
  #awaitsAnswer(where: string): boolean {
    // Nobody is there any more.
    if (where === 'socket.reset') return false;
    if (this.#phase === 'head') return this.#heads.begun || where === 'socket.data';
    if (this.#response?.isOut) return false;
    return this.#phase === 'deciding' || this.#phase === 'body' || this.#phase === 'answering';
  }

  /** As to one whose head could not be read: nobody knows what the next request would meet. */
  #answerInternal(): void {
    this.#body = null;
    this.#out.drop();
    this.#response = new Http1Response(this, this.#out, null);
    this.#response.answer({ fault: new Fault('INTERNAL') });
  }

  tick(nowMs: number): void {
    this.request.tick(nowMs);
    if (this.#linger?.isOver(nowMs) || this.#isStalled(nowMs)) this.close();
    else if (nowMs >= this.#deadlineMs) this.#onDeadline(nowMs);
  }

  #onDeadline(nowMs: number): void {
    if (this.#phase === 'cutting') {
      // The reset comes alone: behind bytes that are not read yet some would take it for the end of a whole body.
      if (this.queuedBytes === 0) this.close();
      else this.#deadlineMs = nowMs + EDGE_LIMITS.HTTP_CUT_DELAY_MS;
    } else if (this.#phase === 'deciding' && this.#deciding !== null) {
      const fault = new Fault('HTTP_ROUTE_TIMEOUT', { seconds: EDGE_LIMITS.HTTP_ROUTE_TIMEOUT_MS / 1000 });
      this.#decidedLate({ fault, retryAfterSecs: 1 }, this.#deciding);
    } else if (this.#phase !== 'head') return;
    else if (this.#heads.begun) this.#refuse(408, '', 0);
    else this.#lastWord();
  }

  /** Not after 101: a terminal that stands still for an hour is no fault there. */
  #isStalled(nowMs: number): boolean {
    if (this.#phase === 'upgraded' || this.#isClosed()) return false;
    return this.#stalls.isOver(nowMs, this.#end, this.#isPaused, this.#readBytes);
  }

  /** The edge is shutting down: an idle connection ends now, a busy one after its response. */
  shutDown(): void {
    if (this.#phase === 'head' && !this.#heads.begun) this.#lastWord();
  }

  /** Says nothing more, and leaves the visitor time to read it. */
  #lastWord(): void {
    if (this.#isClosed()) return;
    this.#phase = 'lingering';
    this.#early = null;
    const linger = new Linger();
    this.#linger = linger;
    this.#end.end(() => {
      linger.onSaidAll(this.#now());
      if (this.#visitorEnded) this.#closed();
    });
    this.#resume();
  }

  #onOverrun(): void {
    this.#owner.onOverrun();
    this.close();
  }

  /** Cuts the connection off, whatever it is doing. */
  close(): void {
    this.request.abort();
    if (this.#splice !== null) this.#splice.reset(GONE);
    else this.#end.reset(GONE);
    this.#closed();
  }

  #closed(): void {
    if (this.#isClosed()) return;
    this.#phase = 'closed';
    this.#body = null;
    this.#early = null;
    this.#deciding = null;
    // Whatever goes wrong on the way, nobody stays counted.
    try {
      this.request.done();
    } finally {
      this.#owner.balancer.release(this.#lease);
      this.#owner.onClosed(this);
    }
  }

  #isClosed(): boolean {
    return this.#phase === 'closed';
  }
}
