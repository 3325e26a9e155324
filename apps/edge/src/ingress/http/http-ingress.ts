// The public HTTP side: takes over visitors' connections, routes their requests by Host, counts, and knows when the last one
// has gone. Listening is the listeners' business, so that plain and TLS ports share one ingress.
import { totalmem } from 'node:os';
import type { TLSSocket } from 'node:tls';
import type { Fault } from '@tunnel/errors';
import { type AcceptedConnection, type ConnectionGate, RETRY_AFTER_SECS } from '@tunnel/http-shell';
import { type ChunkedForm, type OwnResponse, type RequestHead } from '@tunnel/http1';
import { type AcceptedSocket, endOf, type ReportInternalError } from '@tunnel/mux';
import { LinkedSet } from '@tunnel/rules/collections';
import { type Clock, randomId, type Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import { HeldBodies } from '../../policy/held-bodies.ts';
import type { PolicyGate } from '../../policy/policy-gate.ts';
import type { Balancer } from '../../routing/balancer.ts';
import type { HttpRouter, OwnAnswer, RouteDecision, VisitorInfo } from '../../routing/http-router.ts';
import { isGroup, type Route } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { CapturedRules } from '../../upstream/captured-rules.ts';
import type { RequestRecorder } from '../../upstream/response-handler.ts';
import { ServiceRequests } from '../../upstream/service-requests.ts';
import type { Service } from '../../upstream/upstream-request.ts';
import { type EdgeAnswer, EdgeAnswers, errorCodeOf, type Offer, shownRuleOf } from './edge-answers.ts';
import { HttpTotals } from './http-totals.ts';
import { Http1Visitor } from './http1/http1-visitor.ts';
import { Http2Visitor } from './http2/http2-visitor.ts';
import { RefusedVisitors } from './refused-visitors.ts';
import type { ClientIngress, PassedBy, Visitor, VisitorOwner } from './visitor.ts';

/**
 * part of the machine’s memory that bytes waiting for HTTP visitors may take together; over it the largest queue goes first
 * @limit operator: Share of the machine's memory for responses waiting for slow visitors | the connection with the largest queue is closed
 */
const HTTP_QUEUES_MEMORY_SHARE = 0.25;

/** Who keeps captures. */
export interface CaptureSink {
  begin(
    tunnel: Tunnel,
    head: RequestHead,
    startedMs: number,
    bodyForm: ChunkedForm,
    details?: { readonly rules: CapturedRules | null; readonly serviceName: string | null },
  ): RequestRecorder | null;
  /** A rule has answered a request that these tunnels would have been given. null: it is not captured. */
  answered(
    tunnels: Iterable<Tunnel>,
    head: RequestHead,
    startedMs: number,
    rules: CapturedRules,
    response: OwnResponse,
  ): RequestRecorder | null;
  idOf(recorder: RequestRecorder): string;
}

export interface HttpIngressOptions {
  readonly clock: Clock;
  readonly router: Pick<HttpRouter, 'visitorOf'> & {
    route(connection: VisitorInfo, head: RequestHead): RouteDecision | Promise<RouteDecision>;
  };
  readonly balancer: Balancer;
  /** Absent: nobody has rules here. */
  readonly policies?: PolicyGate | undefined;
  readonly heldBodies?: HeldBodies | undefined;
  readonly gate: Pick<ConnectionGate, 'countVisitor' | 'uncountVisitor'>;
  readonly firstByteTimeoutMs: number;
  /** Whether this very tunnel lives, and no successor of it. */
  readonly isListed: (service: Service) => boolean;
  readonly captures: CaptureSink;
  readonly headTimeoutMs: number;
  readonly report: ReportInternalError;
  /** Absent: clients have another way in. */
  readonly clients?: ClientIngress | undefined;
  /** Absent: no client is told of requests that were answered here. */
  readonly offer?: Offer | undefined;
  /** A request is answered, or a connection over. */
  readonly onStreamEnd?: () => void;
  /** What may wait for all visitors together; a share of the machine's memory unless told. */
  readonly queuesMaxBytes?: number;
}

export class HttpIngress implements VisitorOwner {
  readonly balancer: Balancer;
  readonly policies: PolicyGate | null;
  readonly heldBodies: HeldBodies;
  readonly services: ServiceRequests;
  readonly headTimeoutMs: number;
  readonly report: ReportInternalError;
  readonly clients: ClientIngress | null;
  readonly totals = new HttpTotals();
  readonly #given: HttpIngressOptions;
  readonly #visitors = new LinkedSet<Visitor>();
  readonly #refused = new RefusedVisitors(this);
  readonly #answers: EdgeAnswers;
  #ticking: Timer | undefined;
  readonly #queuesMaxBytes: number;
  #isDraining = false;
  #idleWaiters: (() => void)[] = [];

  constructor(options: HttpIngressOptions) {
    this.#given = options;
    this.balancer = options.balancer;
    this.policies = options.policies ?? null;
    this.heldBodies = options.heldBodies ?? new HeldBodies();
    this.services = new ServiceRequests({ ...options, totals: this.totals });
    this.headTimeoutMs = options.headTimeoutMs;
    this.report = options.report;
    this.clients = options.clients ?? null;
    this.#answers = new EdgeAnswers(options.clock, options.offer ?? (() => 'unwanted'));
    this.#queuesMaxBytes = options.queuesMaxBytes ?? memoryShare(HTTP_QUEUES_MEMORY_SHARE);
  }

  readonly route = (connection: VisitorInfo, head: RequestHead): RouteDecision | Promise<RouteDecision> =>
    this.#given.router.route(connection, head);

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** What waits for visitors, beyond what the kernel holds. */
  get queuedBytes(): number {
    let sum = 0;
    for (const visitor of this.#visitors) sum += visitor.queuedBytes;
    return sum;
  }

  get connections(): number {
    return this.#visitors.size;
  }

  start(): void {
    this.#ticking = this.#given.clock.setInterval(() => this.#tick(), EDGE_LIMITS.SESSION_TICK_MS);
  }

  /** Takes over an accepted socket that speaks HTTP/1.1, and of which nothing is read yet. */
  accept(socket: AcceptedSocket, scheme: 'http' | 'https', accepted: AcceptedConnection): void {
    const { remoteAddress } = socket;
    // Gone between the kernel's accept and ours.
    if (remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    const info = this.#given.router.visitorOf(remoteAddress, scheme);
    this.#take(accepted, (owner) => new Http1Visitor(endOf(socket), info, owner, accepted));
  }

  /** Takes over a socket whose TLS handshake chose HTTP/2. */
  acceptHttp2(socket: TLSSocket, accepted: AcceptedConnection): void {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    const info = this.#given.router.visitorOf(remoteAddress, 'https');
    const visitor = this.#take(accepted, (owner) => new Http2Visitor(socket, info, owner));
    if (this.#isDraining) visitor?.shutDown();
  }

  /** null: it is over a limit, and only told so. */
  #take<V extends Visitor & { start(): void }>(
    accepted: AcceptedConnection,
    make: (owner: VisitorOwner) => V,
  ): V | null {
    if (accepted.refusal !== null) {
      this.#refused.add(accepted, make);
      return null;
    }
    const visitor = make(this);
    accepted.served = visitor;
    visitor.amongServed = this.#visitors.add(visitor);
    visitor.start();
    return visitor;
  }

  // ---- from the visitors ----

  countRequest(tunnel: Tunnel): void {
    this.totals.requests += 1;
    tunnel.counters.addRequest();
  }

  countVisitor(address: string): OwnAnswer | null {
    const fault = this.#given.gate.countVisitor(address);
    return fault === null ? null : { fault, retryAfterSecs: RETRY_AFTER_SECS };
  }

  uncountVisitor(address: string): void {
    this.#given.gate.uncountVisitor(address);
  }

  capture(
    tunnel: Tunnel,
    head: RequestHead,
    startedMs: number,
    bodyForm: ChunkedForm,
    policy: PassedBy | null,
  ): RequestRecorder | null {
    const { captures } = this.#given;
    if (policy === null) return captures.begin(tunnel, head, startedMs, bodyForm);
    return policy.isOfLogin ? null : captures.begin(tunnel, policy.visitorsHead, startedMs, bodyForm, policy);
  }

  onPolicyAnswered(
    route: Route,
    head: RequestHead,
    startedMs: number,
    rules: CapturedRules | null,
    response: OwnResponse,
  ): string {
    const recorder =
      rules === null ? null : this.#given.captures.answered(tunnelsAt(route), head, startedMs, rules, response);
    const { status } = response;
    const answer = { head, startedMs, status, code: errorCodeOf(response), rule: shownRuleOf(rules) };
    return this.#report(route, answer, recorder);
  }

  onFaultAnswered(
    route: Route,
    head: RequestHead,
    startedMs: number,
    { code, status }: Fault,
    recorder: RequestRecorder | null,
  ): string {
    return this.#report(route, { head, startedMs, status, code, rule: null }, recorder);
  }

  /** Under one id to all members of a group, which the visitor reads, too. */
  #report(route: Route, answer: Omit<EdgeAnswer, 'requestId'>, recorder: RequestRecorder | null): string {
    const requestId = recorder === null ? randomId('req') : this.#given.captures.idOf(recorder);
    const told = { ...answer, requestId };
    for (const tunnel of tunnelsAt(route)) this.#answers.onAnswered(tunnel, told);
    return requestId;
  }

  onOverrun(): void {
    this.totals.overruns += 1;
  }

  onResponse(status: number, wholeMs: number, edgeMs: number | null): void {
    this.totals.onResponse(status, wholeMs, edgeMs);
    this.#given.onStreamEnd?.();
  }

  onClosed(visitor: Visitor): void {
    if (!this.#visitors.delete(visitor.amongServed)) return;
    this.#given.onStreamEnd?.();
    if (this.#visitors.size > 0) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }

  // ---- time and the end ----

  #tick(): void {
    const nowMs = this.services.now();
    for (const visitor of [...this.#visitors]) {
      try {
        visitor.tick(nowMs);
      } catch (error) {
        visitor.abandon(error, 'visitor.tick');
      }
    }
    this.#refused.tick(nowMs);
    this.#answers.tick();
    if (this.queuedBytes > this.#queuesMaxBytes) this.#shedLargest();
    this.services.sweep(nowMs, this.#given.isListed);
  }

  /** The largest queue goes first, until the others have room. */
  #shedLargest(): void {
    const byQueue = [...this.#visitors]
      .map((visitor) => ({ visitor, bytes: visitor.queuedBytes }))
      .sort((a, b) => b.bytes - a.bytes);
    let sum = byQueue.reduce((total, { bytes }) => total + bytes, 0);
    for (const { visitor, bytes } of byQueue) {
      if (sum <= this.#queuesMaxBytes) return;
      sum -= bytes;
      this.totals.shed += 1;
      visitor.close();
    }
  }

  /** Idle connections end, busy ones after their response. */
  drain(): void {
    this.#isDraining = true;
    for (const visitor of [...this.#visitors]) visitor.shutDown();
    this.#refused.close();
  }

  /** Settles when the last connection is over. */
  whenIdle(): Promise<void> {
    if (this.#visitors.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  /** Ends what a drain did not wait for. */
  stop(): void {
    this.#ticking?.cancel();
    for (const visitor of [...this.#visitors]) visitor.close();
    this.#refused.close();
    this.services.close();
  }
}

const tunnelsAt = (route: Route): Iterable<Tunnel> => (isGroup(route) ? route.members() : [route]);

const memoryShare = (share: number): number => {
  const constrained = process.constrainedMemory?.() ?? 0;
  const memory = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return Math.floor(memory * share);
};
