// The public HTTP side: takes over visitors' connections, routes their requests by Host, counts, and knows when the last one
// has gone. Listening is the listeners' business, so that plain and TLS ports share one ingress.
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { RequestHead } from '@tunnel/core';
import { adoptSocket } from '@tunnel/mux';
import { type Clock, readOncePerTurn, type Timer } from '@tunnel/runtime';
import type { CaptureStore } from '../../capture/capture-store.ts';
import type { CaptureRecorder } from '../../capture/recorder.ts';
import { EDGE_LIMITS } from '../../limits.ts';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { TunnelTable } from '../../pool/tunnel-table.ts';
import { BelievedFacts } from './believed-facts.ts';
import { H2cSessions } from './h2c-sessions.ts';
import { HttpRouter, type HttpRouterOptions } from './http-router.ts';
import { HttpTotals } from './http-totals.ts';
import { Http1Visitor } from './http1-visitor.ts';
import { Http2Visitor } from './http2-visitor.ts';
import { IdleStreams } from './idle-streams.ts';
import { isLocalAnswer, type LocalAnswer } from './local-answer.ts';
import { requestFormOf } from './service-call.ts';
import type { Caller, Dispatch, Visitor, VisitorFacts, VisitorOwner } from './visitor.ts';

export interface HttpIngressOptions extends HttpRouterOptions {
  readonly clock: Clock;
  readonly tunnels: Pick<TunnelTable, 'byName' | 'has'>;
  readonly captures: Pick<CaptureStore, 'begin'>;
  readonly headTimeoutMs: number;
  readonly firstByteTimeoutMs: number;
  /** Addresses and networks. */
  readonly trustedProxies: readonly string[];
  /** A request is answered, or a connection over. */
  readonly onStreamEnd?: () => void;
}

export class HttpIngress implements VisitorOwner {
  readonly idle = new IdleStreams();
  readonly h2c: H2cSessions;
  readonly now: () => number;
  readonly headTimeoutMs: number;
  readonly firstByteTimeoutMs: number;
  readonly totals = new HttpTotals();
  readonly #given: HttpIngressOptions;
  readonly #router: HttpRouter;
  readonly #believed: BelievedFacts;
  readonly #visitors = new Set<Visitor>();
  #ticking: Timer | undefined;
  #isDraining = false;
  #idleWaiters: (() => void)[] = [];

  constructor(options: HttpIngressOptions) {
    this.#given = options;
    this.now = readOncePerTurn(options.clock);
    this.#router = new HttpRouter(options);
    this.#believed = new BelievedFacts(options.trustedProxies);
    this.headTimeoutMs = options.headTimeoutMs;
    this.firstByteTimeoutMs = options.firstByteTimeoutMs;
    this.h2c = new H2cSessions(this);
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  get connections(): number {
    return this.#visitors.size;
  }

  start(): void {
    this.#ticking = this.#given.clock.setInterval(() => this.#tick(), EDGE_LIMITS.SESSION_TICK_MS);
  }

  /** Takes over an accepted, paused socket that speaks HTTP/1.1. */
  accept(socket: Socket, scheme: 'http' | 'https'): void {
    const { remoteAddress } = socket;
    // Gone between the kernel's accept and ours.
    if (remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    const visitor = new Http1Visitor(adoptSocket(socket), this.#believed.ofConnection(remoteAddress, scheme), this);
    this.#visitors.add(visitor);
    visitor.start();
  }

  /** Takes over a socket whose TLS handshake chose HTTP/2. */
  acceptHttp2(socket: TLSSocket): void {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    const visitor = new Http2Visitor(socket, this.#believed.ofConnection(remoteAddress, 'https'), this);
    this.#visitors.add(visitor);
    visitor.start();
    if (this.#isDraining) visitor.shutDown();
  }

  // ---- routing ----

  factsOf(connection: VisitorFacts, head: RequestHead): VisitorFacts {
    return this.#believed.ofRequest(connection, head);
  }

  route(dispatch: Dispatch, head: RequestHead, caller: Caller): Tunnel | LocalAnswer {
    const route = this.#router.route(dispatch, head, caller);
    if (!isLocalAnswer(route)) this.countRequest(route);
    return route;
  }

  another(dispatch: Dispatch, tried: readonly Tunnel[], hasBody: boolean): Tunnel | null {
    return this.#router.another(dispatch, tried, hasBody);
  }

  leave(dispatch: Dispatch): void {
    this.#router.leave(dispatch);
  }

  release(caller: Caller): void {
    this.#router.release(caller);
  }

  countRequest(tunnel: Tunnel): void {
    this.totals.requests += 1;
    tunnel.counters.requests += 1;
  }

  // ---- from the visitors ----

  onBytes(_tunnel: Tunnel, toClient: number, toVisitor: number): void {
    this.totals.bytesToClient += toClient;
    this.totals.bytesToVisitor += toVisitor;
  }

  capture(tunnel: Tunnel, head: RequestHead, startedMs: number): CaptureRecorder | null {
    return this.#given.captures.begin(tunnel, head, startedMs, requestFormOf(tunnel));
  }

  onResponse(status: number, wholeMs: number, edgeMs: number | null): void {
    this.totals.onResponse(status, wholeMs, edgeMs);
    this.#given.onStreamEnd?.();
  }

  onClosed(visitor: Visitor): void {
    if (!this.#visitors.delete(visitor)) return;
    this.#given.onStreamEnd?.();
    if (this.#visitors.size > 0) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }

  // ---- time and the end ----

  #tick(): void {
    const now = this.now();
    for (const visitor of this.#visitors) visitor.tick(now);
    this.idle.sweep(now, (tunnel) => this.#given.tunnels.has(tunnel));
    this.h2c.sweep(now);
  }

  /** Idle connections end, busy ones after their response. */
  drain(): void {
    this.#isDraining = true;
    for (const visitor of [...this.#visitors]) visitor.shutDown();
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
    this.idle.close();
    this.h2c.close();
  }
}
