// Public HTTP side of the edge: owns visitor connections, routes requests by Host, keeps the totals, and reports when the last connection
// has closed. Listening is separate, so that plain and TLS ports share one ingress.
import { totalmem } from 'node:os';
import type { TLSSocket } from 'node:tls';
import type { Fault } from '@tunnel/errors';
import { type AcceptedConnection, type ConnectionGate, RETRY_AFTER_SECS } from '@tunnel/http-shell';
import { type ChunkedForm, type EdgeResponse, type RequestHead } from '@tunnel/http1';
import { type AcceptedSocket, adoptAccepted, type ReportInternalError } from '@tunnel/mux';
import { LinkedSet } from '@tunnel/rules/collections';
import { type Clock, randomId, type Timer, type Tracer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import { HeldBodies } from '../../policy/held-bodies.ts';
import type { PolicyGate } from '../../policy/policy-gate.ts';
import type { Balancer } from '../../routing/balancer.ts';
import type { EdgeReply, HttpRouter, RouteDecision, VisitorInfo } from '../../routing/http-router.ts';
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
 * Share of the machine's memory for bytes queued for HTTP visitors, in total. Above the limit, the connection with the largest queue is
 * closed first.
 * @limit operator: Share of the machine's memory for responses waiting for slow visitors | the connection with the largest queue is closed
 */
const HTTP_QUEUES_MEMORY_SHARE = 0.25;

/** Destination of requests that the edge captures. */
export interface CaptureSink {
  begin(
    tunnel: Tunnel,
    head: RequestHead,
    startedMs: number,
    bodyForm: ChunkedForm,
    details?: { readonly rules: CapturedRules | null; readonly serviceName: string | null },
  ): RequestRecorder | null;
  /** Captures a request answered by a rule, for the tunnels on its route. Returns null if the request is not captured. */
  answered(
    tunnels: Iterable<Tunnel>,
    head: RequestHead,
    startedMs: number,
    rules: CapturedRules,
    response: EdgeResponse,
  ): RequestRecorder | null;
  idOf(recorder: RequestRecorder): string;
}

export interface HttpIngressOptions {
  readonly clock: Clock;
  readonly router: Pick<HttpRouter, 'visitorOf'> & {
    route(connection: VisitorInfo, head: RequestHead): RouteDecision | Promise<RouteDecision>;
  };
  readonly balancer: Balancer;
  /** Checks HTTP requests against policies. Undefined on an edge without policies. */
  readonly policies?: PolicyGate | undefined;
  readonly heldBodies?: HeldBodies | undefined;
  readonly gate: Pick<ConnectionGate, 'countVisitor' | 'uncountVisitor'>;
  readonly firstByteTimeoutMs: number;
  /** Whether the given tunnel object is still registered. A newer tunnel with the same name does not count. */
  readonly isListed: (service: Service) => boolean;
  readonly captures: CaptureSink;
  readonly headTimeoutMs: number;
  readonly report: ReportInternalError;
  /** Receives client connections. Undefined if clients cannot connect through the HTTP ports. */
  readonly clients?: ClientIngress | undefined;
  /** Notifies clients of requests answered by the edge. Undefined to send no notifications. */
  readonly offer?: Offer | undefined;
  /** Traces of requests. Absent without telemetry. */
  readonly tracer?: Tracer | null;
  /** Called when a request is answered or a visitor's connection has closed. */
  readonly onStreamEnd?: () => void;
  /** Maximum bytes queued for all visitors in total. Default: a share of the machine's memory. */
  readonly queuesMaxBytes?: number;
}

export class HttpIngress implements VisitorOwner {
  readonly balancer: Balancer;
  readonly policies: PolicyGate | null;
  readonly heldBodies: HeldBodies;
  readonly tracer: Tracer | null;
  readonly services: ServiceRequests;
  readonly headTimeoutMs: number;
  readonly report: ReportInternalError;
  readonly clients: ClientIngress | null;
  readonly totals = new HttpTotals();
  readonly #options: HttpIngressOptions;
  readonly #visitors = new LinkedSet<Visitor>();
  readonly #refused = new RefusedVisitors(this);
  readonly #answers: EdgeAnswers;
  #ticking: Timer | undefined;
  readonly #queuesMaxBytes: number;
  #isDraining = false;
  #idleWaiters: (() => void)[] = [];

  constructor(options: HttpIngressOptions) {
    this.#options = options;
    this.balancer = options.balancer;
    this.policies = options.policies ?? null;
    this.heldBodies = options.heldBodies ?? new HeldBodies();
    this.tracer = options.tracer ?? null;
    this.services = new ServiceRequests({ ...options, totals: this.totals });
    this.headTimeoutMs = options.headTimeoutMs;
    this.report = options.report;
    this.clients = options.clients ?? null;
    this.#answers = new EdgeAnswers(options.clock, options.offer ?? (() => 'unwanted'));
    this.#queuesMaxBytes = options.queuesMaxBytes ?? memoryShare(HTTP_QUEUES_MEMORY_SHARE);
  }

  readonly route = (connection: VisitorInfo, head: RequestHead): RouteDecision | Promise<RouteDecision> =>
    this.#options.router.route(connection, head);

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Bytes queued for all visitors, without bytes already in the kernel's buffers. */
  get queuedBytes(): number {
    let sum = 0;
    for (const visitor of this.#visitors) sum += visitor.queuedBytes;
    return sum;
  }

  get connections(): number {
    return this.#visitors.size;
  }

  start(): void {
    this.#ticking = this.#options.clock.setInterval(() => this.#tick(), EDGE_LIMITS.SESSION_TICK_MS);
  }

  /** Takes over a visitor's HTTP/1.1 socket that has not been read from. */
  accept(socket: AcceptedSocket, scheme: 'http' | 'https', accepted: AcceptedConnection): void {
    const { remoteAddress } = socket;
    // The visitor disconnected between the kernel's accept and the callback.
    if (remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    const info = this.#options.router.visitorOf(remoteAddress, scheme);
    this.#take(accepted, (owner) => new Http1Visitor(adoptAccepted(socket), info, owner, accepted));
  }

  /** Takes over a visitor's socket after a TLS handshake that negotiated HTTP/2. */
  acceptHttp2(socket: TLSSocket, accepted: AcceptedConnection): void {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    const info = this.#options.router.visitorOf(remoteAddress, 'https');
    const visitor = this.#take(accepted, (owner) => new Http2Visitor(socket, info, owner));
    if (this.#isDraining) visitor?.shutDown();
  }

  /** Returns null if the connection is over a limit. The visitor then only gets an error response. */
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

  // ---- calls from visitors ----

  countRequest(tunnel: Tunnel): void {
    this.totals.requests += 1;
    tunnel.counters.addRequest();
  }

  countVisitor(address: string): EdgeReply | null {
    const fault = this.#options.gate.countVisitor(address);
    return fault === null ? null : { fault, retryAfterSecs: RETRY_AFTER_SECS };
  }

  uncountVisitor(address: string): void {
    this.#options.gate.uncountVisitor(address);
  }

  capture(
    tunnel: Tunnel,
    head: RequestHead,
    startedMs: number,
    bodyForm: ChunkedForm,
    policy: PassedBy | null,
  ): RequestRecorder | null {
    const { captures } = this.#options;
    if (policy === null) return captures.begin(tunnel, head, startedMs, bodyForm);
    return policy.isOfLogin ? null : captures.begin(tunnel, policy.visitorsHead, startedMs, bodyForm, policy);
  }

  onPolicyAnswered(
    route: Route,
    head: RequestHead,
    startedMs: number,
    rules: CapturedRules | null,
    response: EdgeResponse,
  ): string {
    const recorder =
      rules === null ? null : this.#options.captures.answered(tunnelsAt(route), head, startedMs, rules, response);
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

  /** Reports an answer under the same request id to all members of a group. The visitor sees the same id. */
  #report(route: Route, answer: Omit<EdgeAnswer, 'requestId'>, recorder: RequestRecorder | null): string {
    const requestId = recorder === null ? randomId('req') : this.#options.captures.idOf(recorder);
    const told = { ...answer, requestId };
    for (const tunnel of tunnelsAt(route)) this.#answers.onAnswered(tunnel, told);
    return requestId;
  }

  onOverrun(): void {
    this.totals.overruns += 1;
  }

  onResponse(status: number, wholeMs: number, edgeMs: number | null): void {
    this.totals.onResponse(status, wholeMs, edgeMs);
    this.#options.onStreamEnd?.();
  }

  onClosed(visitor: Visitor): void {
    if (!this.#visitors.delete(visitor.amongServed)) return;
    this.#options.onStreamEnd?.();
    if (this.#visitors.size > 0) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }

  // ---- ticks and shutdown ----

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
    this.services.sweep(nowMs, this.#options.isListed);
  }

  /** Closes the connections with the largest queues until the total is below the limit. */
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

  /** Closes idle HTTP connections now, and busy connections after their response. */
  drain(): void {
    this.#isDraining = true;
    for (const visitor of [...this.#visitors]) visitor.shutDown();
    this.#refused.close();
  }

  /** Resolves when the last HTTP connection of a visitor has closed. */
  whenIdle(): Promise<void> {
    if (this.#visitors.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  /** Closes all HTTP connections, even if a drain has not finished. */
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
