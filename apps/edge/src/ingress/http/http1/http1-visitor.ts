// One HTTP/1.1 connection of a visitor: requests one after the other, each routed anew, each answered before the next is read.
import { parseRequestHead, type RequestHead, scannerOf } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { type ByteDuplex, ByteQueue, type ByteReader, type MuxStream, type Splice, splice } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../../limits.ts';
import { Lease } from '../../../routing/balancer.ts';
import { isOwnAnswer, type RouteDecision, type VisitorInfo } from '../../../routing/http-router.ts';
import type { Tunnel } from '../../../routing/tunnel.ts';
import { HeadReader } from '../../../upstream/http1/head-reader.ts';
import { hasBodyOf } from '../../../upstream/upstream-request.ts';
import { refusalCodeOf } from '../own-answer.ts';
import { type LeaseHolder, ProxiedRequest } from '../proxied-request.ts';
import type { Visitor, VisitorOwner } from '../visitor.ts';
import { Http1Response, Http1Writer, type RespondingVisitor } from './http1-response.ts';
import { RequestBody } from './request-body.ts';

type Phase =
  /** Waits for a head, or reads one. */
  | 'head'
  /** Where the request goes is being asked; what comes behind its head waits. */
  | 'deciding'
  /** Passes the request's body on. */
  | 'body'
  /** The request is complete, its response is not. */
  | 'answering'
  /** After 101: bytes both ways. */
  | 'upgraded'
  /** We have said our last word; what still comes is thrown away, so that the visitor can read it. */
  | 'lingering'
  | 'closed';

const GONE: StreamReason = { code: 'cancelled', text: 'the connection is over' };

export class Http1Visitor implements ByteReader, RespondingVisitor, Visitor, LeaseHolder {
  readonly request: ProxiedRequest;
  readonly #info: VisitorInfo;
  readonly #end: ByteDuplex;
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
  #goOn = true;
  /** Bytes that wait for their turn: of pipelined requests, or behind a head that is being decided. Their sender is paused. */
  #rest: ByteQueue | null = null;
  #splice: Splice | null = null;
  /** In 'lingering'. */
  #linger: Linger | null = null;
  #visitorEnded = false;
  #deadlineMs: number;

  constructor(end: ByteDuplex, info: VisitorInfo, owner: VisitorOwner) {
    this.#end = end;
    this.#info = info;
    this.#owner = owner;
    this.#out = new Http1Writer(end);
    this.#lease = new Lease(info.isProxy ? null : info.address);
    this.request = new ProxiedRequest(owner, this);
    this.#deadlineMs = this.#now() + owner.headTimeoutMs;
  }

  #now(): number {
    return this.#owner.services.now();
  }

  get isDraining(): boolean {
    return this.#owner.isDraining;
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
    let at = start;
    this.#goOn = true;
    while (at < end) {
      if (this.#phase === 'head') at = this.#takeHead(bytes, at, end);
      else if (this.#phase === 'body') at = this.#takeBody(bytes, at, end, borrowed);
      else if (this.#phase === 'answering' || this.#phase === 'deciding') {
        this.#keepRest(bytes, at, end);
        return false;
      } else {
        this.#linger?.onBytes(this.#now());
        return true;
      }
    }
    return this.#goOn;
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
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    const decision = this.#owner.route(this.#info, head);
    if (decision instanceof Promise) this.#await(decision, head);
    else this.#decided(decision, head);
  }

  #await(decision: Promise<RouteDecision>, head: RequestHead): void {
    const decided = (made: RouteDecision): void => {
      // The visitor may have left meanwhile.
      if (this.#phase !== 'deciding') return;
      try {
        this.#decided(made, head);
        this.#takeRest();
      } catch (error) {
        this.abandon(error, 'visitor.decided');
      }
    };
    decision.then(decided, (error: unknown) => decided({ fault: Fault.from(error) }));
  }

  #decided(decision: RouteDecision, head: RequestHead): void {
    this.#phase = hasBodyOf(head.framing) ? 'body' : 'answering';
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

  #keepRest(bytes: Buffer, start: number, end: number): void {
    this.#rest ??= new ByteQueue();
    this.#rest.push(bytes, start, end);
  }

  // ---- from the response ----

  onServed(): void {
    this.#lease.isServed = true;
  }

  onResponded(keepAlive: boolean): void {
    this.#body = null;
    this.#response = null;
    this.request.done();
    // Nobody is waited for when the edge shuts down; what was asked already is still answered.
    const ends = !keepAlive || (this.#owner.isDraining && this.#rest === null);
    if (ends) this.#lastWord();
    else this.#next();
  }

  onCutOff(): void {
    this.close();
  }

  /** After 101: bytes both ways between the visitor and the local service, until both have ended. */
  onUpgraded(stream: MuxStream): void {
    const early = this.#rest;
    const { member } = this.#lease;
    this.#body = null;
    this.request.detach();
    this.#phase = 'upgraded';
    this.#rest = null;
    while (early !== null && early.length > 0) {
      const piece = early.shift(early.length);
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
    if (this.#rest === null && (this.#phase === 'body' || this.#phase === 'answering')) this.#end.resume();
  }

  /** The next request, which may have come already. */
  #next(): void {
    this.#phase = 'head';
    this.#deadlineMs = this.#now() + EDGE_LIMITS.HTTP_KEEP_ALIVE_MS;
    if (this.#rest === null) this.#end.resume();
    else this.#takeRest();
  }

  #takeRest(): void {
    const rest = this.#rest;
    if (rest === null) return;
    this.#rest = null;
    let goOn = true;
    while (rest.length > 0) {
      const piece = rest.shift(rest.length);
      if (this.#rest === null) goOn = this.onData(piece, 0, piece.length, false);
      else this.#keepRest(piece, 0, piece.length);
    }
    if (goOn && this.#rest === null) this.#end.resume();
  }

  // ---- the visitor ----

  /** The visitor has taken what was written. */
  onDrain(): void {
    this.request.resume();
  }

  onEnd(): void {
    // Before the response has ended a FIN is an abort: the service is told, and nothing more is said.
    if (this.#phase !== 'head' && this.#phase !== 'lingering') return this.close();
    this.#visitorEnded = true;
    if (this.#phase === 'head') this.#lastWord();
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
      linger.onSaidAll(this.#now());
      if (this.#visitorEnded) this.#closed();
    });
    this.#end.resume();
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
    this.#rest = null;
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

/** How long a visitor is listened to after our last word. Who is still sending has not read it, and would lose it with a reset. */
export class Linger {
  #untilMs = Number.POSITIVE_INFINITY;
  #endMs = Number.POSITIVE_INFINITY;
  #saidAll = false;

  /** Our last byte is out. */
  get saidAll(): boolean {
    return this.#saidAll;
  }

  onSaidAll(nowMs: number): void {
    this.#saidAll = true;
    this.#endMs = nowMs + EDGE_LIMITS.HTTP_LINGER_MAX_MS;
    this.onBytes(nowMs);
  }

  /** The visitor sends; until our last byte is out the time is its own. */
  onBytes(nowMs: number): void {
    if (this.#saidAll) this.#untilMs = Math.min(nowMs + EDGE_LIMITS.HTTP_LINGER_MS, this.#endMs);
  }

  isOver(nowMs: number): boolean {
    return nowMs >= this.#untilMs;
  }
}
