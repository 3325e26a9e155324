// One visitor's request on its way: routed, judged by the rules of its route, leased to a member of it, put to that one's service, and to the next
// member's while nothing has reached a service. Requests of one HTTP/1.1 connection follow each other, so one object serves them all.

import { Fault } from '@tunnel/errors';
import { RETRY_AFTER_SECS } from '@tunnel/http-shell';
import { type OwnResponse, type RequestHead } from '@tunnel/http1';
import { withoutEdgeCookies } from '@tunnel/policy';
import { ConnectionAuthCache } from '../../policy/connection-auth-cache.ts';
import { FailedMembers, type Lease, type Refusal } from '../../routing/balancer.ts';
import {
  isOwnAnswer,
  isToControl,
  type OwnAnswer,
  type RouteDecision,
  type RoutedRequest,
  type VisitorInfo,
} from '../../routing/http-router.ts';
import { type Route, routeKeyOf } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { CapturedRules } from '../../upstream/captured-rules.ts';
import type { RequestRecorder, ResponseHandler, UnsentRequest } from '../../upstream/response-handler.ts';
import type { UpstreamRequest } from '../../upstream/upstream-request.ts';
import { type BodySource, HeldSource } from './body-source.ts';
import type { AnswerNotes } from './own-answer.ts';
import { type BodyHolder, RequestPolicy } from './request-policy.ts';
import type { VisitorOwner } from './visitor.ts';

/** how long it may take to find out where a request goes */
export const HTTP_ROUTE_TIMEOUT_MS = 10_000;
/** how long the rules of a tunnel may take for one request: a password, a key set, a login at its provider, or a body that is held */
export const POLICY_DECISION_TIMEOUT_MS = 60_000;

/** Gives a request its lease: an HTTP/1.1 connection has one, an HTTP/2 connection one for each route. */
export interface LeaseHolder {
  /** Of the connection, whichever of its requests asks. */
  readonly authCache: ConnectionAuthCache;
  leaseFor(routeKey: string): Lease;
  /** The lease may have found a member, or lost it. */
  onLeased(routeKey: string, lease: Lease): void;
}

/** Of a connection whose requests follow each other. */
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
  /** The first byte of its head has come. */
  startedMs = 0;
  /** Of the tunnel or the group that the request was last leased to; empty before. */
  routeKey = '';
  readonly #owner: VisitorOwner;
  readonly #holder: LeaseHolder;
  /** Rises with each request that is over: what was asked for an earlier one comes too late. */
  #turn = 0;
  #visitor: VisitorInfo | null = null;
  /** Of a request that came through a proxy and counts for its visitor by itself. */
  #countedAddress: string | null = null;
  /** null: there are no rules for it. */
  #policy: RequestPolicy | null = null;
  /** The tunnel or group that was asked for, and the head as the visitor sent it; null: not known yet, or there is none. */
  #route: Route | null = null;
  #askedHead: RequestHead | null = null;
  // Set by begin().
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

  /** A service has it, and its answer is not complete. */
  get isUnderWay(): boolean {
    return this.#upstream !== null;
  }

  // ---- where it goes ----

  /** By its host, then by the rules of what stands there: at once, unless something must be asked first. */
  decide(connection: VisitorInfo, head: RequestHead, bodyHolder: BodyHolder): RouteDecision | Promise<RouteDecision> {
    const routed = this.#owner.route(connection, head);
    if (!(routed instanceof Promise)) return this.#judge(routed, head, bodyHolder);
    const turn = this.#turn;
    return routed.then((made) => {
      // Its visitor has left meanwhile.
      if (turn !== this.#turn) return made;
      try {
        return this.#judge(made, head, bodyHolder);
      } catch (error) {
        this.#owner.report(error, 'visitor.decided');
        throw error;
      }
    });
  }

  /** Whoever is turned away counts for an address, and for nobody's tunnel. */
  #judge(decision: RouteDecision, head: RequestHead, holder: BodyHolder): RouteDecision | Promise<RouteDecision> {
    if (isToControl(decision) || isOwnAnswer(decision)) return decision;
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

  /** How long that may take. */
  get decisionTimeoutMs(): number {
    return this.#policy === null ? HTTP_ROUTE_TIMEOUT_MS : POLICY_DECISION_TIMEOUT_MS;
  }

  #countVisitor({ isProxy, address }: VisitorInfo): OwnAnswer | null {
    if (!isProxy) return null;
    const overLimit = this.#owner.countVisitor(address);
    if (overLimit === null) this.#countedAddress = address;
    return overLimit;
  }

  // ---- what its rules need, and have noted ----

  /** Of the visitor's connection. */
  get authCache(): ConnectionAuthCache {
    return this.#holder.authCache;
  }

  get heldBodies(): VisitorOwner['heldBodies'] {
    return this.#owner.heldBodies;
  }

  /** Monotonic milliseconds. */
  now(): number {
    return this.#owner.services.now();
  }

  /** The rules threw: the request does not pass. */
  onDecisionFailed(error: unknown): void {
    this.#owner.report(error, 'policy.decide');
  }

  /** The policy has answered. `rules` null: no rule is to be named. Returns the id of the request. */
  onAnswered(route: Route, head: RequestHead, rules: CapturedRules | null, response: OwnResponse): string | undefined {
    return this.#owner.onPolicyAnswered(route, head, this.startedMs, rules, response);
  }

  /** For the answer, whosever it is; null: nothing is to be done to it. */
  get notes(): AnswerNotes | null {
    return this.#policy;
  }

  /** Bytes that its body may have. */
  get maxBody(): number | null {
    return this.#policy?.maxBody ?? null;
  }

  /** Its bytes are counted, or some of its trailers kept back. */
  get isBodyRead(): boolean {
    return this.maxBody !== null || (this.#policy?.hidesTrailers ?? false);
  }

  /** Its service takes too long with a body that was held. */
  isOverdue(nowMs: number): boolean {
    return this.#body instanceof HeldSource && this.#body.isStalled(nowMs);
  }

  // ---- who serves it ----

  /** The member that serves it, and counts it, or what the visitor is answered instead. */
  settle(decision: RoutedRequest | OwnAnswer): Tunnel | OwnAnswer {
    const leased = isOwnAnswer(decision) ? decision : this.#lease(decision);
    // What a rule answers has been reported with its rule.
    if (!isOwnAnswer(leased) || 'own' in leased) return leased;
    return { ...leased, requestId: this.#reportAnswer(leased.fault, null) };
  }

  /** Returns the id of the request. Of a request that no tunnel was found for, no client is told: undefined. */
  #reportAnswer(fault: Fault, recorder: RequestRecorder | null): string | undefined {
    const route = this.#route;
    const head = this.#askedHead;
    if (route === null || head === null || this.#policy?.isOfLogin === true) return undefined;
    return this.#owner.onFaultAnswered(route, head, this.startedMs, fault, recorder);
  }

  #lease({ route }: RoutedRequest): Tunnel | OwnAnswer {
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

  /** Clients leave an edge that stops, and a decision may come after that: whoever waited for it is told to come again, not that nobody is there. */
  answerTo(fault: Fault): OwnAnswer {
    const isLeft = this.#owner.isDraining && fault.code === 'TUNNEL_AWAY';
    const requestId = this.#reportAnswer(isLeft ? STOPPING.fault : fault, this.#recorder);
    if (isLeft) return { ...STOPPING, requestId };
    return fault.code === 'PLATFORM_AWAY'
      ? { fault, retryAfterSecs: RETRY_AFTER_SECS, requestId }
      : { fault, requestId };
  }

  #isLeft({ reason }: Refusal): boolean {
    return this.#owner.isDraining && reason === 'no-healthy';
  }

  /** `body` null: there is none, or it was held. */
  begin(member: Tunnel, head: RequestHead, handler: ResponseHandler, body: BodySource | null): void {
    const policy = this.#policy;
    this.#failed = null;
    if (policy === null) {
      this.#head = withoutEdgeCookies(head);
      this.#body = body;
    } else {
      // As the rules changed it.
      const { held } = policy;
      this.#head = policy.head;
      this.#body = held === null ? body : new HeldSource(held);
    }
    this.#handler = handler;
    this.#send(member).start();
    this.passHeld();
  }

  /** Its service takes more of the body. false: that is not held, and whoever reads the visitor goes on. */
  passHeld(): boolean {
    if (!(this.#body instanceof HeldSource)) return false;
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

  /** false: there is nobody else to ask. */
  retryOnNextMember({ waiting, requestDone, trailers }: UnsentRequest): boolean {
    const { balancer, services } = this.#owner;
    const nowMs = services.now();
    const failed = this.#member;
    this.#failed ??= new FailedMembers(nowMs);
    this.#failed.members.push(failed);
    const lease = this.#holder.leaseFor(this.routeKey);
    // A body stays among services that speak the same HTTP: what waits of it is in their form.
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

  /** The head of an answer goes out, of the service's or of our own. */
  answered(status: number): void {
    const nowMs = this.#owner.services.preciseNow();
    const wholeMs = nowMs - this.startedMs;
    // While a body is on its way the time is the visitor's.
    const serviceMs = this.#body === null ? (this.#upstream?.serviceMs(nowMs) ?? null) : null;
    this.#owner.onResponse(status, wholeMs, serviceMs === null ? null : wholeMs - serviceMs);
  }

  endBody(trailers: UnsentRequest['trailers']): void {
    this.#upstream?.endBody(this.#policy?.trailersOf(trailers) ?? trailers);
  }

  /** More has come of its body than its rules allow: that is the answer, or a cut where one has begun. */
  refuseBody(isAnswered: boolean): void {
    const upstream = this.#upstream;
    const { policies } = this.#owner;
    this.#upstream = null;
    const fault = new Fault('POLICY_BODY_TOO_LARGE');
    if (!isAnswered && policies !== null) this.#policy?.answeredLate(policies, fault.status);
    upstream?.refuse(fault);
  }

  /** The visitor has taken what was written. */
  resume(): void {
    this.#upstream?.resume();
  }

  tick(nowMs: number): void {
    this.#policy?.tick(nowMs);
    this.#upstream?.tick(nowMs);
  }

  /** It has become a pair of byte streams, or its answer is out; what still comes of the body goes nowhere. */
  detach(): void {
    this.#upstream = null;
    // An upgraded connection may live for days: what its service did not take of a held body does not.
    if (this.#body instanceof HeldSource) this.#body.drop();
    this.#body = null;
  }

  /** It is over, and counts for nobody's address any more. */
  done(): void {
    this.detach();
    this.#turn += 1;
    this.#route = null;
    this.#askedHead = null;
    this.#recorder = null;
    this.#endPolicy();
    const address = this.#countedAddress;
    if (address === null) return;
    this.#countedAddress = null;
    this.#owner.uncountVisitor(address);
  }

  #endPolicy(): void {
    const policy = this.#policy;
    if (policy === null) return;
    this.#policy = null;
    policy.end();
  }

  /** Something of ours threw: the service is left, and nobody is told by it. */
  giveUp(): void {
    const upstream = this.#upstream;
    this.#upstream = null;
    upstream?.giveUp();
  }

  /** The visitor left. */
  abort(): void {
    const upstream = this.#upstream;
    this.#upstream = null;
    upstream?.abort();
  }
}

const answerOf = ({ reason, fault }: Refusal): OwnAnswer =>
  reason === 'no-healthy' ? { fault } : { fault, retryAfterSecs: RETRY_AFTER_SECS };

const STOPPING = { fault: new Fault('EDGE_SHUTTING_DOWN'), retryAfterSecs: RETRY_AFTER_SECS };
