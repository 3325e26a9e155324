// An HTTP/1.1 connection of a visitor. Requests are processed sequentially; each is routed and checked by the policy separately, and starts
// after the previous response has been sent.

import { Fault } from '@tunnel/errors';
import type { AcceptedConnection } from '@tunnel/http-shell';
import { parseRequestHead, type RequestHead } from '@tunnel/http1';
import { type ByteReader, type Splice, splice } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { type ConnectionState } from '@tunnel/rules/admission';
import { type ListNode } from '@tunnel/rules/collections';
import { EDGE_LIMITS } from '../../../limits.ts';
import type { HeldBody } from '../../../policy/held-bodies.ts';
import { Lease } from '../../../routing/balancer.ts';
import { isEdgeReply, isToControl, type RouteDecision, type VisitorInfo } from '../../../routing/http-router.ts';
import type { Tunnel } from '../../../routing/tunnel.ts';
import { HeadReader } from '../../../upstream/http1/head-reader.ts';
import type { UpstreamStream } from '../../../upstream/upstream.ts';
import { type DecisionTaker, PendingDecision } from '../pending-decision.ts';
import { OneLease, ProxiedRequest } from '../proxied-request.ts';
import { refusalCodeOf } from '../render-answer.ts';
import type { BodyHolder } from '../request-policy.ts';
import { StallWatch } from '../stall-watch.rules.ts';
import type { Visitor, VisitorDuplex, VisitorOwner } from '../visitor.ts';
import { Http1Input } from './http1-input.ts';
import { awaitsAnswer, describePhase, type Phase } from './http1-phase.ts';
import { Http1Response, Http1Writer } from './http1-response.ts';
import { IncomingBody } from './request-body.ts';

/** Delay before the reset that cuts off a response. Some visitors take a reset directly behind bytes for a normal end. */
const HTTP_CUT_DELAY_MS = 1000;
/** Maximum linger time for a visitor that still sends its body and reads the response only afterwards. */
export const HTTP_LINGER_MAX_MS = 30_000;

const GONE: StreamReason = { code: 'cancelled', text: 'the connection has ended' };

export class Http1Visitor implements ByteReader, DecisionTaker, BodyHolder, Visitor {
  readonly request: ProxiedRequest;
  readonly input: Http1Input;
  amongServed: ListNode<Visitor> | null = null;
  readonly #info: VisitorInfo;
  readonly #end: VisitorDuplex;
  readonly #owner: VisitorOwner;
  readonly #accepted: AcceptedConnection | undefined;
  readonly #out: Http1Writer;
  /** Lease of the visitor's connection on a tunnel or group member, for all its requests. */
  readonly #lease = new Lease();
  readonly #heads = new HeadReader();
  #phase: Phase = 'head';
  readonly #body = new IncomingBody();
  /** Response to the visitor's current request. Null between requests. */
  #response: Http1Response | null = null;
  #isAbandoned = false;
  /** Routing and policy decision that is pending in phase 'deciding'. Null if the decision was synchronous. */
  #pending: PendingDecision | null = null;
  /** Head of the visitor's current request. */
  #head!: RequestHead;
  readonly #stalls = new Stalls();
  #splice: Splice | null = null;
  #lingering: LingeringClose | null = null;
  #visitorEnded = false;
  #deadlineMs: number;
  /** Time at which the connection's last request began or ended. Monotonic milliseconds. */
  #activeAtMs: number;

  constructor(end: VisitorDuplex, info: VisitorInfo, owner: VisitorOwner, accepted?: AcceptedConnection) {
    this.#end = end;
    this.#info = info;
    this.#owner = owner;
    this.#accepted = accepted;
    this.input = new Http1Input(end, this);
    this.#out = new Http1Writer(end, () => {
      owner.onOverrun();
      this.close();
    });
    this.request = new ProxiedRequest(owner, new OneLease(this.#lease));
    this.#activeAtMs = this.#now();
    this.#deadlineMs = this.#activeAtMs + owner.headTimeoutMs;
  }

  // ---- state ----

  get isIdle(): boolean {
    return this.#phase === 'head' || this.#phase === 'lingering';
  }

  get activeAtMs(): number {
    return this.#activeAtMs;
  }

  describe(): ConnectionState {
    const state = describePhase(this.#phase, this.#heads.begun, this.input.isPaused, this.queuedBytes);
    return { ...state, tunnelId: this.#lease.member?.tunnelId ?? null };
  }

  #now(): number {
    return this.#owner.services.now();
  }

  /** Whether the visitor's connection accepts no further requests: the edge is shutting down, or early bytes were lost. */
  get endsAfterAnswer(): boolean {
    return this.#owner.isDraining || this.input.hasLostBytes;
  }

  get queuedBytes(): number {
    return this.#end.queuedBytes;
  }

  start(): void {
    this.#end.read(this);
  }

  /** True if the last byte of the current request has arrived. */
  get requestDone(): boolean {
    return this.#phase === 'answering';
  }

  // ---- reading ----

  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    if (this.#lingering !== null) this.#lingering.onBytes(this.#now());
    return this.input.onData(bytes, start, end, borrowed);
  }

  /**
   * Whether the visitor's waiting bytes belong to a request body or to a client's connection. Such bytes must not be lost, so reading
   * pauses instead.
   */
  get isBodyWaiting(): boolean {
    return (this.#phase === 'deciding' && !this.#body.isWhole) || this.#phase === 'leaving';
  }

  /** Processes bytes and returns the position at which it stopped. The bytes behind must wait, or are unwanted. */
  take(bytes: Buffer, start: number, end: number, borrowed: boolean): number {
    let at = start;
    while (at < end) {
      if (this.#phase === 'head') at = this.#takeHead(bytes, at, end);
      else if (this.#phase === 'body' || this.#phase === 'holding') at = this.#takeBody(bytes, at, end, borrowed);
      else return at;
    }
    return at;
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
    this.#head = head;
    this.#body.begin(head.framing);
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    this.#activeAtMs = this.request.startedMs;
    const { request } = this;
    const decision = request.decide(this.#info, head, this);
    if (!(decision instanceof Promise)) this.#decided(decision);
    else this.#pending = new PendingDecision(decision, this, this.#now(), request.decisionTimeoutMs);
  }

  /** Buffers the request's body before the decision. A visitor that sent Expect: 100-continue is asked to send the body. */
  hold(held: HeldBody): void {
    this.#phase = 'holding';
    this.#body.holdIn(held);
    if (this.#head.expectContinue) this.#out.writeContinue();
    this.input.takeEarly();
  }

  onDecided(decision: RouteDecision): void {
    this.#pending = null;
    this.#decided(decision);
    this.input.takeEarly();
  }

  #decided(decision: RouteDecision): void {
    if (isToControl(decision)) return this.#leave();
    const head = this.#head;
    this.#phase = this.#body.isWhole ? 'answering' : 'body';
    this.#body.drop();
    const response = new Http1Response(this, this.#out, head);
    this.#response = response;
    const leased = this.request.settle(decision);
    if (isEdgeReply(leased)) response.answer(leased);
    else this.#ask(leased, head, response);
  }

  #ask(member: Tunnel, head: RequestHead, response: Http1Response): void {
    const { maxBody, isBodyRead } = this.request;
    // Chunks pass unchanged if the service also speaks HTTP/1.1 and no rule inspects the body.
    const form = member.http?.localProtocol === 'h2c' || isBodyRead ? 'data' : 'chunks';
    this.request.begin(member, head, response, this.#body.passOn(form, maxBody));
  }

  #takeBody(bytes: Buffer, start: number, end: number, borrowed: boolean): number {
    const step = this.#body.take(bytes, start, end, borrowed);
    if (!step.goOn) this.input.holdBack();
    if (step.kind === 'bad') return this.#refuse(400, step.reason, end);
    if (step.kind === 'over') this.request.refuseBody(this.#response?.isOut ?? false);
    if (step.kind === 'stopped') this.#phase = 'deciding';
    if (step.kind !== 'done') return end;
    if (this.#phase === 'holding') this.#phase = 'deciding';
    else if (this.#phase === 'body') {
      this.#phase = 'answering';
      this.request.endBody(step.trailers);
    }
    return step.next;
  }

  /**
   * Moves a client's connection to the control plane, starting with the current request. Deferred with setImmediate, because the read that
   * delivered the request may still be in progress. After an error, the socket is destroyed here, because no other part owns it at that
   * moment.
   */
  #leave(): void {
    this.#phase = 'leaving';
    setImmediate(() => {
      try {
        this.#handOver();
      } catch (error) {
        this.#accepted?.socket.destroy();
        this.abandon(error, 'visitor.leave');
      }
    });
  }

  #handOver(): void {
    if (this.#isClosed()) return;
    const first = this.input.takeAll(Buffer.from(this.#head.text, 'latin1'));
    const socket = this.#end.release();
    this.#closed();
    if (socket !== null && this.#accepted) this.#owner.clients?.takeOver(socket, this.#accepted, first);
  }

  /** Rejects an unreadable request and ends the connection, because the start of the next request is unknown. */
  #refuse(status: number, reason: string, end: number): number {
    this.request.abort();
    // Part of a response was sent already. An error response behind it would be taken for the rest.
    if (this.#response?.isOut) this.close();
    else this.#answerUnread(new Fault(refusalCodeOf(status), { reason }));
    return end;
  }

  #answerUnread(fault: Fault): void {
    this.#out.drop();
    this.#body.drop();
    this.#response = new Http1Response(this, this.#out, null);
    this.#response.answer({ fault });
  }

  // ---- calls from the response ----

  /** Marks the visitor's connection as served, because a service has responded. */
  onServed(): void {
    this.#lease.isServed = true;
  }

  /** Called when the last byte of the response to the visitor is written. */
  onResponded(keepAlive: boolean): void {
    if (this.#isClosed()) return;
    this.#body.drop();
    this.#response = null;
    this.request.done();
    // Unsent body bytes may still be in the memory into which the next request would be read.
    if (!keepAlive || this.input.isPaused) this.#closeAfterResponse();
    else if (this.#out.isFree) this.#next();
    else this.#phase = 'sending';
  }

  /** Cuts off the connection in the middle of a response, so that the visitor notices the missing rest. */
  onCutOff(): void {
    this.request.abort();
    this.#phase = 'cutting';
    this.input.discard();
    this.#deadlineMs = this.#now() + HTTP_CUT_DELAY_MS;
    this.input.resume();
  }

  /** After status 101: relays bytes between visitor and local service, until both directions have ended. */
  onUpgraded(stream: UpstreamStream): void {
    const { member } = this.#lease;
    const { services } = this.#owner;
    this.#body.drop();
    this.request.detach();
    this.#phase = 'upgraded';
    this.input.handOver(stream);
    const joined = splice(this.#end, stream, {
      onDone: () => this.#closed(),
      abandon: (error, where) => this.abandon(error, where),
      onBytes: (direction, count) => {
        // The lease has ended, so the bytes are not counted for any tunnel.
        if (member === null) return;
        member.counters.addBytes(count);
        const isToClient = direction === 'a-to-b';
        services.onBytes(isToClient ? count : 0, isToClient ? 0 : count);
      },
    });
    if (!this.#isClosed()) this.#splice = joined;
  }

  onRequestDrain(): void {
    if (this.request.passHeld()) return;
    if (this.#phase === 'body' || this.#phase === 'answering') this.input.resume();
  }

  /** Continues with the visitor's next request, which may have arrived already. */
  #next(): void {
    // During shutdown, the connection does not wait for new requests, but requests that have arrived are still answered.
    const isLast = this.#owner.isDraining && this.input.waitingBytes === 0;
    if (isLast || this.input.hasLostBytes) return this.#closeAfterResponse();
    this.#phase = 'head';
    this.#activeAtMs = this.#now();
    this.#deadlineMs = this.#activeAtMs + EDGE_LIMITS.HTTP_KEEP_ALIVE_MS;
    this.input.takeEarly();
  }

  // ---- events of the socket ----

  /** Called when the visitor has accepted all written bytes. */
  onDrain(): void {
    this.#out.onDrain();
    if (this.#phase === 'sending') this.#next();
    else this.request.resume();
  }

  onEnd(): void {
    this.#visitorEnded = true;
    if (this.#phase === 'head' || this.#phase === 'sending') this.#closeAfterResponse();
    // A FIN before the end of the response is an abort: the request is canceled and the connection closed.
    else if (this.#phase !== 'lingering') this.close();
    else if (this.#lingering?.hasSentAll) this.#closed();
  }

  onReset(): void {
    this.request.abort();
    this.#closed();
  }

  // ---- ticks, errors and closing ----

  /**
   * Handles an internal error: with an error response the first time, if no part of a response was sent, otherwise by closing the
   * connection.
   */
  abandon(error: unknown, where: string): void {
    const isFirst = !this.#isAbandoned;
    this.#isAbandoned = true;
    try {
      this.#owner.report(error, where);
      this.request.giveUp();
      const isOut = this.#response?.isOut ?? false;
      if (isFirst && awaitsAnswer(this.#phase, where, this.#heads.begun, isOut)) {
        // Keep-alive is off, as after an unreadable head, because the state of the connection is unknown.
        this.#answerUnread(new Fault('INTERNAL'));
      } else this.close();
    } catch {
      try {
        this.#end.reset(GONE);
      } finally {
        this.#closed();
      }
    }
  }

  tick(nowMs: number): void {
    this.request.tick(nowMs);
    this.#pending?.tick(nowMs);
    if (this.#lingering?.isOver(nowMs) || this.request.isOverdue(nowMs) || this.#isStalled(nowMs)) this.close();
    else if (nowMs >= this.#deadlineMs) this.#onDeadline(nowMs);
  }

  #onDeadline(nowMs: number): void {
    if (this.#phase === 'cutting') {
      // The reset is sent separately, because polling programs (for example with libuv) take a reset behind unread bytes for a normal end.
      if (this.queuedBytes === 0) this.close();
      else this.#deadlineMs = nowMs + HTTP_CUT_DELAY_MS;
    } else if (this.#phase !== 'head') return;
    else if (this.#heads.begun) this.#refuse(408, '', 0);
    else this.#closeAfterResponse();
  }

  /** Whether the visitor's connection makes no progress. Does not apply after status 101, where a terminal may be silent for an hour. */
  #isStalled(nowMs: number): boolean {
    if (this.#phase === 'upgraded' || this.#isClosed()) return false;
    return this.#stalls.isOver(nowMs, this.#end, this.input);
  }

  /** Shuts down gracefully: an idle connection closes now, a busy connection after its response. */
  shutDown(): void {
    if (this.#phase === 'head' && !this.#heads.begun) this.#closeAfterResponse();
  }

  /** Ends the sending direction and gives the visitor time to read the response. */
  #closeAfterResponse(): void {
    if (this.#isClosed()) return;
    this.#phase = 'lingering';
    this.#pending?.cancel();
    this.input.discard();
    this.#lingering = LingeringClose.behind(this.#end, this.#owner.services, () => {
      if (this.#visitorEnded) this.#closed();
    });
    this.input.resume();
  }

  /** Closes the visitor's connection immediately, even in the middle of a request. */
  close(): void {
    this.request.abort();
    if (this.#splice !== null) this.#splice.reset(GONE);
    // The visitor has a complete response and may still be reading it, so the connection is not reset.
    else if (this.#lingering?.hasSentAll) this.#end.detach();
    else this.#end.reset(GONE);
    this.#closed();
  }

  #closed(): void {
    if (this.#isClosed()) return;
    this.#phase = 'closed';
    this.#body.drop();
    this.input.discard();
    this.#pending?.cancel();
    // The finally block keeps the connection counts correct even after an error.
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

// ---- timeouts ----

/** Detects a visitor's connection without progress, or with a lost peer. */
class Stalls {
  // Stall watches are created on first use, because most connections never wait.
  #sending: StallWatch | null = null;
  #uploading: StallWatch | null = null;

  /** Called once a second. A paused input means that the service does not accept more of the body. */
  isOver(nowMs: number, end: VisitorDuplex, { isPaused, readBytes }: Http1Input): boolean {
    if (isPaused && end.hasLostPeer) return true;
    const isUnread = end.queuedBytes > 0;
    const takenBytes = isUnread || isPaused ? end.takenBytes : 0;
    if (isUnread) this.#sending ??= new StallWatch(EDGE_LIMITS.HTTP_SEND_TIMEOUT_MS);
    if (isPaused) this.#uploading ??= new StallWatch(EDGE_LIMITS.HTTP_STALLED_BODY_MS);
    const isUnsent = this.#sending?.isOver(nowMs, isUnread, takenBytes) ?? false;
    return (this.#uploading?.isOver(nowMs, isPaused, takenBytes + readBytes) ?? false) || isUnsent;
  }
}

/**
 * Keeps a connection open after the final response. A visitor that is still sending has not read the response, and would lose it with a
 * reset.
 */
export class LingeringClose {
  /** Ends the sending direction of a visitor's connection. Calls `onSentAll` when all bytes are sent. */
  static behind(end: VisitorDuplex, { now }: { readonly now: () => number }, onSentAll: () => void): LingeringClose {
    const lingering = new LingeringClose();
    end.end(() => {
      lingering.onSentAll(now());
      onSentAll();
    });
    return lingering;
  }

  #untilMs = Number.POSITIVE_INFINITY;
  #endMs = Number.POSITIVE_INFINITY;
  #hasSentAll = false;

  /** True if the last byte was sent to the visitor. */
  get hasSentAll(): boolean {
    return this.#hasSentAll;
  }

  onSentAll(nowMs: number): void {
    this.#hasSentAll = true;
    this.#endMs = nowMs + HTTP_LINGER_MAX_MS;
    this.onBytes(nowMs);
  }

  /** Extends the time while the visitor sends. The time starts only when the last byte is sent. */
  onBytes(nowMs: number): void {
    if (this.#hasSentAll) this.#untilMs = Math.min(nowMs + EDGE_LIMITS.HTTP_LINGER_MS, this.#endMs);
  }

  isOver(nowMs: number): boolean {
    return nowMs >= this.#untilMs;
  }
}
