// A request of an HTTP/2 visitor: routing, body and response.
import type { ServerHttp2Stream } from 'node:http2';
import { Fault } from '@tunnel/errors';
import { type HeaderField, type RequestHead, type ResponseHead } from '@tunnel/http1';
import { guard } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../../../limits.ts';
import type { HeldBody } from '../../../policy/held-bodies.ts';
import { type EdgeReply, isEdgeReply, isToControl, type RouteDecision } from '../../../routing/http-router.ts';
import { type RawFields, requestHeadOf, valueIn } from '../../../upstream/h2c/http2-fields.ts';
import type { ResponseHandler, UnsentRequest } from '../../../upstream/response-handler.ts';
import type { UpstreamStream } from '../../../upstream/upstream.ts';
import { hasBodyOf } from '../../../upstream/upstream-request.ts';
import { type DecisionTaker, PendingDecision } from '../pending-decision.ts';
import { ProxiedRequest } from '../proxied-request.ts';
import { refusalCodeOf } from '../render-answer.ts';
import type { BodyHolder } from '../request-policy.ts';
import { StallWatch } from '../stall-watch.rules.ts';
import { Http2Body } from './http2-body.ts';
import { Http2Response } from './http2-response.ts';
import type { Http2Visitor } from './http2-visitor.ts';

const UNASKED: StreamReason = { code: 'cancelled', text: 'HTTP/2 does not support protocol upgrades' };

/** Name of HTTP/2 request streams in reports of errors thrown by event handlers. */
const SCOPE = 'http2.stream';

export class Http2Request implements ResponseHandler, DecisionTaker, BodyHolder {
  readonly #visitor: Http2Visitor;
  readonly #stream: ServerHttp2Stream;
  readonly #request: ProxiedRequest;
  readonly #response: Http2Response;
  // The request head is set by begin(), before routing starts.
  #head!: RequestHead;
  #accept: string | null = null;
  #body: Http2Body | null = null;
  /** Buffer of the request body while the policy decision is pending. Otherwise null. */
  #held: HeldBody | null = null;
  /** Request trailers that arrived before the edge decided where the body goes. */
  #earlyTrailers: RawFields | null = null;
  /** Routing and policy decision of the request that is pending. Null if there is none. */
  #pending: PendingDecision | null = null;
  readonly #sending = new StallWatch(EDGE_LIMITS.HTTP_SEND_TIMEOUT_MS);
  readonly #uploading = new StallWatch(EDGE_LIMITS.HTTP_STALLED_BODY_MS);
  #isOver = false;

  constructor(visitor: Http2Visitor, stream: ServerHttp2Stream) {
    this.#visitor = visitor;
    this.#stream = stream;
    this.#request = new ProxiedRequest(visitor.owner, visitor);
    this.#request.startedMs = visitor.owner.services.preciseNow();
    this.#response = new Http2Response(stream, visitor.outbound, (status) => this.#request.answered(status), this);
    // Errors are handled by the 'close' event that follows. Without a listener an error would end the process.
    guard.listen(stream, 'error', this, SCOPE, () => {});
    guard.listen(stream, 'aborted', this, SCOPE, () => this.#request.abort());
    guard.listen(stream, 'close', this, SCOPE, () => this.#onClosed());
    guard.listen(stream, 'drain', this, SCOPE, () => {
      this.#response.onAllOut();
      this.#request.resume();
    });
  }

  /** Key of the tunnel or group that serves the request. Empty before the first lease. */
  get routeKey(): string {
    return this.#request.routeKey;
  }

  /** Bytes of the response queued for the visitor. */
  get queuedBytes(): number {
    return this.#response.queuedBytes;
  }

  /** Whether the request's stream is closed in HTTP/2 terms. Node.js may still wait for a write. */
  get isClosed(): boolean {
    return this.#stream.closed;
  }

  begin(raw: RawFields): void {
    // The visitor may have disconnected while the request waited for its turn.
    if (this.#isOver) return;
    const head = requestHeadOf(raw, !this.#stream.endAfterHeaders);
    this.#accept = valueIn(raw, 'accept');
    if (head.kind === 'problem') {
      this.#answer({ fault: new Fault(refusalCodeOf(head.status), { reason: head.reason }) });
      return;
    }
    this.#head = head;
    // The body is not read while the decision is pending, so the visitor's window fills.
    const decision = this.#request.decide(this.#visitor.info, head, this);
    if (decision instanceof Promise) this.#await(decision);
    else this.#decided(decision);
  }

  #await(decision: Promise<RouteDecision>): void {
    // Node emits trailers when they arrive, even if the body before them was not read.
    guard.listen(this.#stream, 'trailers', this, SCOPE, (_trailers, _flags, raw: RawFields) => {
      this.#earlyTrailers = raw;
    });
    const { services } = this.#visitor.owner;
    this.#pending = new PendingDecision(decision, this, services.now(), this.#request.decisionTimeoutMs);
  }

  hold(held: HeldBody): void {
    this.#held = held;
    const body = new Http2Body(this.#stream, this.#head.framing, this);
    body.taker = held;
    this.#body = body;
    if (this.#head.expectContinue) this.#stream.additionalHeaders({ ':status': 100 });
    body.start(this.#earlyTrailers);
  }

  onDecided(decision: RouteDecision): void {
    this.#pending = null;
    // The visitor may have disconnected while the routing decision was pending.
    if (!this.#isOver && !this.#stream.aborted) this.#decided(decision);
  }

  #decided(decision: RouteDecision): void {
    // The connection cannot move to the control plane, because it is shared with other requests.
    if (isToControl(decision)) return this.#response.askForHttp1();
    const member = this.#request.settle(decision);
    if (isEdgeReply(member)) {
      this.#answer(member);
      return;
    }
    const { framing } = this.#head;
    const isHeld = this.#body !== null;
    this.#body = hasBodyOf(framing) && !isHeld ? new Http2Body(this.#stream, framing, this) : null;
    if (this.#body !== null) this.#body.maxBytes = this.#request.maxBody ?? Number.POSITIVE_INFINITY;
    this.#request.begin(member, this.#head, this, this.#body);
    if (this.#body === null) this.#stream.resume();
    // An error response to the request may have been sent already.
    else if (!this.#request.isUnderWay) this.#body.drop();
    else this.#body.start(this.#earlyTrailers);
  }

  onBodyEnd(trailers: readonly HeaderField[]): void {
    if (this.#held === null) this.#request.endBody(trailers);
    else this.#held.end(trailers);
    this.#held = null;
  }

  /** Rejects a request with a body larger than the policy allows. */
  onBodyTooLarge(): void {
    this.#request.refuseBody(this.#response.isBegun);
  }

  onBadBody(reason: string): void {
    this.#request.abort();
    this.#fail(new Fault('HTTP_BAD_REQUEST', { reason }));
  }

  // ---- response from the service ----

  /**
   * Returns true in all cases: HTTP/2 has no credit for heads, so no event would resume the source. The number of interim heads is limited
   * instead.
   */
  onInterim(head: ResponseHead): boolean {
    this.#response.interim(this.#editedHead(head));
    return true;
  }

  onHead(head: ResponseHead, endsStream: boolean): void {
    this.#visitor.onServed(this.#request.routeKey);
    this.#response.head(this.#editedHead(head), endsStream);
  }

  #editedHead(head: ResponseHead): ResponseHead {
    const { edits } = this.#request;
    return edits === null ? head : edits.applyToHead(head);
  }

  onData(bytes: Buffer, start: number, end: number): boolean {
    return this.#response.body(bytes, start, end);
  }

  /** Returns null: chunked bodies cannot pass unchanged, because HTTP/2 has its own framing. */
  passChunks(): null {
    return null;
  }

  onTrailers(trailers: readonly HeaderField[]): void {
    this.#response.trailers(trailers);
  }

  onTurn(): boolean {
    return true;
  }

  onEnd(requestDone: boolean): void {
    this.#request.detach();
    this.#end(requestDone);
  }

  onError(fault: Fault, unsent: UnsentRequest | null): void {
    if (unsent === null || this.#response.isBegun || !this.#request.retryOnNextMember(unsent)) this.#fail(fault);
  }

  onUpgrade(_head: ResponseHead, stream: UpstreamStream): void {
    stream.reset(UNASKED);
    this.#fail(new Fault('LOCAL_MALFORMED', { reason: UNASKED.text }));
  }

  onRequestDrain(): void {
    if (!this.#request.passHeld()) this.#body?.resume();
  }

  // ---- ending the response ----

  #answer(answer: EdgeReply): void {
    const isWhole = this.#stream.endAfterHeaders;
    if (this.#response.reply(answer, this.#accept, this.#request.edits)) this.#end(isWhole);
  }

  #fail(fault: Fault): void {
    this.#request.detach();
    if (this.#response.isBegun) {
      this.#request.brokenOff(fault);
      this.#response.cut();
    } else this.#answer(this.#request.answerTo(fault));
  }

  #end(requestDone: boolean): void {
    if (this.#stream.destroyed) return;
    if (!requestDone) this.#body?.drop();
    this.#response.end(!requestDone);
  }

  // ---- ticks, errors and closing ----

  tick(nowMs: number): void {
    this.#request.tick(nowMs);
    this.#pending?.tick(nowMs);
    if (this.#request.isOverdue(nowMs) || this.#isStalled(nowMs)) {
      this.#request.abort();
      this.#response.cut();
    }
  }

  #isStalled(nowMs: number): boolean {
    const isUnread = this.queuedBytes > 0;
    const isPaused = this.#body?.isPaused ?? false;
    const { sentBytes } = this.#response;
    const isUnsent = this.#sending.isOver(nowMs, isUnread, sentBytes);
    return this.#uploading.isOver(nowMs, isPaused, sentBytes + (this.#body?.receivedBytes ?? 0)) || isUnsent;
  }

  /** Handles an internal error, with an error response if nothing was sent yet. */
  abandon(error: unknown, where: string): void {
    try {
      this.#visitor.owner.report(error, where);
      this.#request.giveUp();
      if (!this.#stream.destroyed) this.#fail(new Fault('INTERNAL'));
    } catch {
      this.#stream.destroy();
    }
    // The 'close' event has passed, or its handler threw, so no other event ends the request.
    if (this.#stream.destroyed) this.#onClosed();
  }

  #onClosed(): void {
    if (this.#isOver) return;
    const isTakenBack = this.#request.isUnderWay || (this.#stream.aborted && !this.#response.isCut);
    this.#isOver = true;
    try {
      this.#response.onAllOut();
      this.#request.abort();
    } finally {
      this.#request.done();
      this.#visitor.onOver(this, isTakenBack);
    }
  }
}
