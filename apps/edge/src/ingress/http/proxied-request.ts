// A visitor's request on its way to a service: routed, checked by the policy, leased to a member, and sent to the member's service. While
// no service has received any of it, the request is retried on the next member. Requests of an HTTP/1.1 connection are sequential and share
// a single object.

import { Fault } from '@tunnel/errors';
import { RETRY_AFTER_SECS } from '@tunnel/http-shell';
import { type EdgeResponse, type RequestHead } from '@tunnel/http1';
import { withoutEdgeCookies } from '@tunnel/policy';
import { ConnectionAuthCache } from '../../policy/connection-auth-cache.ts';
import { FailedMembers, type Lease, type Refusal } from '../../routing/balancer.ts';
import {
  type EdgeReply,
  isEdgeReply,
  isToControl,
  type RouteDecision,
  type RoutedRequest,
  type VisitorInfo,
} from '../../routing/http-router.ts';
import { type Route, routeKeyOf } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { CapturedRules } from '../../upstream/captured-rules.ts';
import type { RequestRecorder, ResponseHandler, UnsentRequest } from '../../upstream/response-handler.ts';
import type { UpstreamRequest } from '../../upstream/upstream-request.ts';
import { type BodySource, BufferedBody } from './body-source.ts';
import { shownRuleOf } from './edge-answers.ts';
import type { ResponseEdits } from './render-answer.ts';
import { type BodyHolder, RequestPolicy } from './request-policy.ts';
import { beginTrace, type RequestTrace } from './request-trace.ts';
import type { VisitorOwner } from './visitor.ts';

/** Maximum time for finding the route of a request. */
export const HTTP_ROUTE_TIMEOUT_MS = 10_000;
/**
 * Maximum time for the policy decision on a request. Includes password checks, key set downloads, calls to login providers and body
 * buffering.
 */
export const POLICY_DECISION_TIMEOUT_MS = 60_000;

/** Provides the lease of a request. An HTTP/1.1 connection has a single lease, an HTTP/2 connection has a lease per route. */
export interface LeaseHolder {
  /** Authentication cache of the visitor's connection, shared by all its requests. */
  readonly authCache: ConnectionAuthCache;
  leaseFor(routeKey: string): Lease;
  /** Called when the lease of a route may have gained or lost a member. */
  onLeased(routeKey: string, lease: Lease): void;
}

/** Lease holder of an HTTP/1.1 connection: its requests are sequential and share one lease. */
export class OneLease implements LeaseHolder {
  readonly authCache = new ConnectionAuthCache();
  readonly #lease: Lease;

  constructor(lease: Lease) {
    this.#lease = lease;
  }

  leaseFor(): Lease {
    return this.#lease;
  }

  onLeased(): void {}
}

export class ProxiedRequest {
  /** Time at which the first byte of the request's head arrived. Monotonic milliseconds. */
  startedMs = 0;
  /** Key of the tunnel or group that served the request last. Empty before the first lease. */
  routeKey = '';
  readonly #owner: VisitorOwner;
  readonly #holder: LeaseHolder;
  /** Incremented when a request has ended, so that late results for an earlier request are recognized and ignored. */
  #turn = 0;
  #visitor: VisitorInfo | null = null;
  /** Visitor address counted for the request itself, if the request came through a trusted proxy. Otherwise null. */
  #countedAddress: string | null = null;
  /** Policy decision about the request. Null if no policy applies. */
  #policy: RequestPolicy | null = null;
  /** The requested tunnel or group, and the head as sent by the visitor. Null while not known, or without a route. */
  #route: Route | null = null;
  #askedHead: RequestHead | null = null;
  /** Trace of the request. Null without telemetry, and for requests that leave no trace. */
  #trace: RequestTrace | null = null;
  // begin() sets the following fields of the request.
  #head!: RequestHead;
  #handler!: ResponseHandler;
  #member!: Tunnel;
  #body: BodySource | null = null;
  #failed: FailedMembers | null = null;
  #recorder: RequestRecorder | null = null;
  #upstream: UpstreamRequest | null = null;

  constructor(owner: VisitorOwner, holder: LeaseHolder) {
    this.#owner = owner;
    this.#holder = holder;
  }

  /** Whether a service has received the request and its response is not complete. */
  get isUnderWay(): boolean {
    return this.#upstream !== null;
  }

  // ---- routing and policy decision ----

  /** Routes the request by host, then applies the policy. Returns a promise only if a lookup is needed. */
  decide(connection: VisitorInfo, head: RequestHead, bodyHolder: BodyHolder): RouteDecision | Promise<RouteDecision> {
    const { tracer } = this.#owner;
    if (tracer !== null) this.#trace = beginTrace(tracer, head, connection);
    const routed = this.#owner.route(connection, head);
    if (!(routed instanceof Promise)) return this.#judge(routed, head, bodyHolder);
    const turn = this.#turn;
    return routed.then((made) => {
      // The visitor disconnected while the request was being routed.
      if (turn !== this.#turn) return made;
      try {
        return this.#judge(made, head, bodyHolder);
      } catch (error) {
        this.#owner.report(error, 'visitor.decided');
        throw error;
      }
    });
  }

  /** Applies limits and the policy to a routed request. Rejected requests count for the visitor's address, but for no tunnel. */
  #judge(decision: RouteDecision, head: RequestHead, holder: BodyHolder): RouteDecision | Promise<RouteDecision> {
    // A client's connection to the control plane is not a request of a visitor.
    if (isToControl(decision)) this.#trace = null;
    if (isToControl(decision) || isEdgeReply(decision)) return decision;
    this.#trace?.routed(decision.route, decision.visitor);
    this.#visitor = decision.visitor;
    this.#route = decision.route;
    this.#askedHead = head;
    const overLimit = this.#countVisitor(decision.visitor);
    if (overLimit !== null) return overLimit;
    const { policies } = this.#owner;
    const inForce = policies === null ? null : policies.inForceAt(decision.route);
    if (policies === null || inForce === null) return decision;
    this.#policy = new RequestPolicy(decision, inForce, head, holder, this);
    return this.#policy.decide(policies);
  }

  /** Maximum time for routing the request or, with a policy, for the policy's decision. */
  get decisionTimeoutMs(): number {
    return this.#policy === null ? HTTP_ROUTE_TIMEOUT_MS : POLICY_DECISION_TIMEOUT_MS;
  }

  #countVisitor({ isProxy, address }: VisitorInfo): EdgeReply | null {
    if (!isProxy) return null;
    const overLimit = this.#owner.countVisitor(address);
    if (overLimit === null) this.#countedAddress = address;
    return overLimit;
  }

  // ---- policy effects and edits ----

  /** Authentication cache of the visitor's connection. */
  get authCache(): ConnectionAuthCache {
    return this.#holder.authCache;
  }

  get heldBodies(): VisitorOwner['heldBodies'] {
    return this.#owner.heldBodies;
  }

  /** Returns the current time in monotonic milliseconds. */
  now(): number {
    return this.#owner.services.now();
  }

  /** Reports an error thrown by the policy. The request is then rejected. */
  onDecisionFailed(error: unknown): void {
    this.#owner.report(error, 'policy.decide');
  }

  /** Reports a response made by the policy. `rules` is null if no rule is named. Returns the request id. */
  onAnswered(route: Route, head: RequestHead, rules: CapturedRules | null, response: EdgeResponse): string | undefined {
    this.#trace?.ruled(shownRuleOf(rules));
    return this.#owner.onPolicyAnswered(route, head, this.startedMs, rules, response);
  }

  /** Policy changes for the response, no matter whether the service or the edge makes it. Null if nothing changes. */
  get edits(): ResponseEdits | null {
    return this.#policy;
  }

  /** Maximum body size in bytes set by the policy. Null without a limit. */
  get maxBody(): number | null {
    return this.#policy?.maxBody ?? null;
  }

  /** Whether the request body must be parsed, to count its bytes or to remove trailers. */
  get isBodyRead(): boolean {
    return this.maxBody !== null || (this.#policy?.hidesTrailers ?? false);
  }

  /** Returns whether the service has stopped accepting a buffered request body. */
  isOverdue(nowMs: number): boolean {
    return this.#body instanceof BufferedBody && this.#body.isStalled(nowMs);
  }

  // ---- leasing and sending ----

  /** Returns the member that serves the request, or the edge's answer to the visitor. Counts the request for the member. */
  settle(decision: RoutedRequest | EdgeReply): Tunnel | EdgeReply {
    const leased = isEdgeReply(decision) ? decision : this.#lease(decision);
    // Answers made by policy rules were reported already, together with the rule.
    if (!isEdgeReply(leased) || 'response' in leased) return leased;
    this.#trace?.failed(leased.fault);
    return { ...leased, requestId: this.#reportAnswer(leased.fault, null) };
  }

  /**
   * Reports an error response to the tunnel's clients and returns the request id. Returns undefined without a route, because no client is
   * notified then.
   */
  #reportAnswer(fault: Fault, recorder: RequestRecorder | null): string | undefined {
    const route = this.#route;
    const head = this.#askedHead;
    if (route === null || head === null || this.#policy?.isOfLogin === true) return undefined;
    return this.#owner.onFaultAnswered(route, head, this.startedMs, fault, recorder);
  }

  #lease({ route }: RoutedRequest): Tunnel | EdgeReply {
    const { balancer } = this.#owner;
    this.routeKey = routeKeyOf(route);
    const lease = this.#holder.leaseFor(this.routeKey);
    const unserved = balancer.acquire(lease, route);
    this.#holder.onLeased(this.routeKey, lease);
    if (unserved !== null) return this.#isLeft(unserved) ? STOPPING : answerOf(unserved);
    const member = lease.member as Tunnel;
    this.#owner.countRequest(member);
    return member;
  }

  /**
   * Returns the answer for a fault. Clients disconnect from a stopping edge, and a decision may arrive after that; the visitor is then
   * asked to retry instead of getting "tunnel away".
   */
  answerTo(fault: Fault): EdgeReply {
    const isLeft = this.#owner.isDraining && fault.code === 'TUNNEL_AWAY';
    this.#trace?.failed(isLeft ? STOPPING.fault : fault);
    const requestId = this.#reportAnswer(isLeft ? STOPPING.fault : fault, this.#recorder);
    if (isLeft) return { ...STOPPING, requestId };
    return fault.code === 'PLATFORM_AWAY'
      ? { fault, retryAfterSecs: RETRY_AFTER_SECS, requestId }
      : { fault, requestId };
  }

  #isLeft({ reason }: Refusal): boolean {
    return this.#owner.isDraining && reason === 'no-healthy';
  }

  /** Sends the request to a member. `body` is null if the request has no body or the body was buffered. */
  begin(member: Tunnel, head: RequestHead, handler: ResponseHandler, body: BodySource | null): void {
    const policy = this.#policy;
    this.#failed = null;
    if (policy === null) {
      this.#head = withoutEdgeCookies(head);
      this.#body = body;
    } else {
      // Request head and body as changed by the policy.
      const { held } = policy;
      this.#head = policy.head;
      this.#body = held === null ? body : new BufferedBody(held);
    }
    this.#handler = handler;
    this.#send(member).start();
    this.passHeld();
  }

  /**
   * Continues with a buffered body when the service accepts more. Returns false if the body is not buffered, so that the caller resumes
   * reading from the visitor.
   */
  passHeld(): boolean {
    if (!(this.#body instanceof BufferedBody)) return false;
    this.#body.pass((trailers) => this.endBody(trailers));
    return true;
  }

  #send(member: Tunnel): UpstreamRequest {
    const { services } = this.#owner;
    const head = this.#head;
    const visitor = this.#visitor as VisitorInfo;
    const rewrite = member.http?.hostHeader ?? null;
    const bodyForm = this.#body?.form ?? 'data';
    const serviceName = this.#policy?.serviceName ?? null;
    const { group } = member;
    this.#member = member;
    this.#trace?.sentTo(member);
    this.#recorder = this.#owner.capture(member, head, this.startedMs, bodyForm, this.#policy);
    const upstream = services.create(
      member,
      {
        head,
        options: {
          visitorAddress: visitor.address,
          forwardedFor: visitor.forwardedFor,
          proto: visitor.scheme,
          hostHeader: rewrite === null ? 'keep' : { rewrite },
          secret: member.secret?.reveal(),
          trace: this.#trace?.forService,
        },
        serviceName,
        hasBody: this.#body !== null,
        bodyForm,
        hasOthers: group === null ? null : () => group.healthyCount > (group.isHealthy(member) ? 1 : 0),
        recorder: this.#recorder,
      },
      this.#handler,
    );
    this.#upstream = upstream;
    if (this.#body !== null) this.#body.taker = upstream;
    return upstream;
  }

  /** Sends the request to another member. Returns false if no other member is available. */
  retryOnNextMember({ waiting, requestDone, trailers }: UnsentRequest): boolean {
    const { balancer, services } = this.#owner;
    const nowMs = services.now();
    const failed = this.#member;
    this.#failed ??= new FailedMembers(nowMs);
    this.#failed.members.push(failed);
    const lease = this.#holder.leaseFor(this.routeKey);
    // A request with a body is retried only on services with the same HTTP version, because queued body bytes are already encoded for that
    // version.
    const kind = this.#body === null ? 'any' : 'same-local-protocol';
    const next = balancer.retryOnNextMember(lease, this.#failed, nowMs, kind);
    this.#holder.onLeased(this.routeKey, lease);
    if (next === null) return false;
    failed.counters.takeBackRequest();
    next.counters.addRequest();
    this.#recorder?.discard();
    const upstream = this.#send(next);
    while (waiting !== null && waiting.length > 0) {
      const bytes = waiting.shift(waiting.length);
      upstream.writeBody(bytes, 0, bytes.length, false);
    }
    if (this.#body !== null && requestDone) upstream.endBody(trailers);
    upstream.start();
    this.passHeld();
    return true;
  }

  /** Records the response times when a response head is sent, from the service or from the edge. */
  answered(status: number): void {
    const nowMs = this.#owner.services.preciseNow();
    const wholeMs = nowMs - this.startedMs;
    // While a request body is in transit, the service's time depends on the visitor, so no edge time is recorded.
    const waitedMs = this.#upstream?.serviceMs(nowMs) ?? null;
    const serviceMs = this.#body === null ? waitedMs : null;
    this.#trace?.answered(status, nowMs, waitedMs);
    this.#owner.onResponse(status, wholeMs, serviceMs === null ? null : wholeMs - serviceMs);
  }

  /** Records that the response was cut off after its head, by a failure of the service or of the path to it. */
  brokenOff(fault: Fault): void {
    this.#trace?.brokenOff(fault);
  }

  endBody(trailers: UnsentRequest['trailers']): void {
    this.#upstream?.endBody(this.#policy?.trailersOf(trailers) ?? trailers);
  }

  /**
   * Rejects a request with a body larger than the policy allows: with an error response or, after the response has begun, by closing the
   * connection.
   */
  refuseBody(isAnswered: boolean): void {
    const upstream = this.#upstream;
    const { policies } = this.#owner;
    this.#upstream = null;
    const fault = new Fault('POLICY_BODY_TOO_LARGE');
    const rule = isAnswered || policies === null ? null : this.#policy?.answeredLate(policies, fault.status);
    this.#trace?.ruled(rule ?? null);
    upstream?.refuse(fault);
  }

  /** Resumes the response after the visitor has accepted the queued bytes. */
  resume(): void {
    this.#upstream?.resume();
  }

  tick(nowMs: number): void {
    this.#policy?.tick(nowMs);
    this.#upstream?.tick(nowMs);
  }

  /** Detaches the request from its service, after an upgrade or when the response is complete. The rest of the body is discarded. */
  detach(): void {
    this.#upstream = null;
    // An upgraded connection can last for days, so the unsent part of a buffered body is freed.
    if (this.#body instanceof BufferedBody) this.#body.drop();
    this.#body = null;
  }

  /** Ends the request. It no longer counts for the visitor's address. */
  done(): void {
    this.detach();
    this.#turn += 1;
    this.#route = null;
    this.#askedHead = null;
    this.#recorder = null;
    this.#endPolicy();
    this.#endTrace();
    const address = this.#countedAddress;
    if (address === null) return;
    this.#countedAddress = null;
    this.#owner.uncountVisitor(address);
  }

  #endTrace(): void {
    const trace = this.#trace;
    if (trace === null) return;
    this.#trace = null;
    trace.end(this.#owner.services.preciseNow());
  }

  #endPolicy(): void {
    const policy = this.#policy;
    if (policy === null) return;
    this.#policy = null;
    policy.end();
  }

  /** Drops the service's stream after an internal error, without notifying the response handler. */
  giveUp(): void {
    const upstream = this.#upstream;
    this.#upstream = null;
    upstream?.giveUp();
  }

  /** Cancels the request, because the visitor disconnected. */
  abort(): void {
    const upstream = this.#upstream;
    this.#upstream = null;
    upstream?.abort();
  }
}

const answerOf = ({ reason, fault }: Refusal): EdgeReply =>
  reason === 'no-healthy' ? { fault } : { fault, retryAfterSecs: RETRY_AFTER_SECS };

const STOPPING = { fault: new Fault('EDGE_SHUTTING_DOWN'), retryAfterSecs: RETRY_AFTER_SECS };
