// Where requests go: by Host to a tunnel or to a member of a group, and to another member when the first did not get it.
// Counts connections for the tunnels that they are dispatched to.
import {
  type ConnectionCounts,
  type ConnectionVerdict,
  type RequestHead,
  redirectToHttps,
  subdomainOf,
  type TunnelGroup,
} from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Dispatcher } from '../../pool/dispatcher.ts';
import type { NamePool } from '../../pool/name-pool.ts';
import type { Tunnel } from '../../pool/tunnel.ts';
import { isGroup, type Target, type TunnelTable } from '../../pool/tunnel-table.ts';
import { isLocalAnswer, type LocalAnswer } from './local-answer.ts';
import { requestFormOf } from './service-call.ts';
import type { Caller, Dispatch } from './visitor.ts';

export interface HttpRouterOptions {
  readonly domain: string;
  readonly tunnels: Pick<TunnelTable, 'byName'>;
  readonly names: Pick<NamePool, 'isHeld'>;
  readonly dispatcher: Dispatcher;
  readonly counts: ConnectionCounts;
  /** The public https port a plain visitor is sent to; null: plain requests are served, too. */
  readonly redirectPort: () => number | null;
}

const NONE: readonly Tunnel[] = [];

/** Connections come and go: a moment later there may be room. */
const RETRY_AFTER_SECS = 1;

export class HttpRouter {
  readonly #given: HttpRouterOptions;

  constructor(options: HttpRouterOptions) {
    this.#given = options;
  }

  route(dispatch: Dispatch, head: RequestHead, caller: Caller): Tunnel | LocalAnswer {
    const redirectPort = caller.facts.scheme === 'http' ? this.#given.redirectPort() : null;
    // A visitor of HTTP/1.0 may name no host: there is nowhere to send it.
    if (redirectPort !== null && head.host !== '') return { own: redirectToHttps(head, redirectPort) };
    const target = this.#targetOf(head.host);
    if (isLocalAnswer(target)) return target;
    return this.#claim(caller) ?? this.#staying(dispatch, target) ?? this.#dispatch(dispatch, target);
  }

  /** What comes through a proxy counts for its visitor's address, request by request; null: it may go on. */
  #claim(caller: Caller): LocalAnswer | null {
    const { isProxy, address } = caller.facts;
    if (!isProxy) return null;
    const verdict = this.#given.counts.addressOpened(address);
    if (verdict.kind !== 'counted') return refusalOf(verdict);
    caller.countedAddress = address;
    return null;
  }

  release(caller: Caller): void {
    const { countedAddress } = caller;
    if (countedAddress === null) return;
    caller.countedAddress = null;
    this.#given.counts.addressClosed(countedAddress);
  }

  #targetOf(host: string): Target | LocalAnswer {
    const name = subdomainOf(host, this.#given.domain);
    const target = name === null ? undefined : this.#given.tunnels.byName(name);
    if (target !== undefined) return target;
    if (name !== null && this.#given.names.isHeld(name)) return { fault: new Fault('TUNNEL_AWAY') };
    return { fault: new Fault('TUNNEL_NOT_FOUND', { host: host === '' ? 'this address' : host }) };
  }

  /** Where the connection's last request went, if the next one may go there, too. */
  #staying(dispatch: Dispatch, target: Target): Tunnel | null {
    const { tunnel } = dispatch;
    if (tunnel === null) return null;
    if (isGroup(target))
      return this.#given.dispatcher.stays(target, tunnel) && isAtHand(target, tunnel) ? tunnel : null;
    if (tunnel.tunnelId !== target.tunnelId) return null;
    // Registered again it has the same id and another session.
    dispatch.tunnel = target;
    return target;
  }

  #dispatch(dispatch: Dispatch, target: Target): Tunnel | LocalAnswer {
    const { dispatcher } = this.#given;
    this.leave(dispatch);
    let full = NONE;
    let refusal: LocalAnswer | null = null;
    for (;;) {
      const tunnel = dispatcher.choose(target, full);
      if (tunnel === null) return refusal ?? { fault: new Fault(isGroup(target) ? 'GROUP_UNHEALTHY' : 'TUNNEL_AWAY') };
      const verdict = this.#enter(dispatch, tunnel);
      if (verdict.kind === 'counted') {
        dispatcher.dispatched(tunnel);
        return tunnel;
      }
      refusal = refusalOf(verdict);
      if (verdict.kind === 'address-full') return refusal;
      full = [...full, tunnel];
    }
  }

  /** A connection counts for the tunnel that serves it. */
  #enter(dispatch: Dispatch, tunnel: Tunnel): ConnectionVerdict {
    const verdict = this.#given.counts.opened(tunnel.tunnelId, countedFor(dispatch));
    if (verdict.kind !== 'counted') return verdict;
    dispatch.tunnel = tunnel;
    dispatch.isServed = false;
    tunnel.counters.openConnections += 1;
    return verdict;
  }

  leave(dispatch: Dispatch): void {
    const { tunnel } = dispatch;
    dispatch.tunnel = null;
    if (tunnel === null) return;
    tunnel.counters.openConnections -= 1;
    this.#given.counts.closed(tunnel.tunnelId, countedFor(dispatch));
  }

  // ---- another member ----

  another(dispatch: Dispatch, tried: readonly Tunnel[], hasBody: boolean): Tunnel | null {
    const failed = tried.at(-1);
    const group = failed?.group ?? null;
    if (failed === undefined || group === null) return null;
    const fits = (member: Tunnel): boolean => !hasBody || requestFormOf(member) === requestFormOf(failed);
    const { tunnel } = dispatch;
    // With HTTP/2 another request may have taken the connection elsewhere meanwhile.
    const isElsewhere = tunnel !== null && !tried.includes(tunnel) && group.isHealthy(tunnel) && fits(tunnel);
    const next = isElsewhere ? tunnel : this.#move(dispatch, group, tried, fits);
    if (next === null) return null;
    failed.counters.requests -= 1;
    next.counters.requests += 1;
    return next;
  }

  #move(
    dispatch: Dispatch,
    group: TunnelGroup<Tunnel>,
    tried: readonly Tunnel[],
    fits: (member: Tunnel) => boolean,
  ): Tunnel | null {
    const { dispatcher } = this.#given;
    const { tunnel: from, isServed } = dispatch;
    const passed = [...tried];
    for (let next = dispatcher.choose(group, passed); next !== null; next = dispatcher.choose(group, passed)) {
      passed.push(next);
      if (!fits(next)) continue;
      // First, so that the connection itself is not what fills its address.
      this.leave(dispatch);
      if (this.#enter(dispatch, next).kind === 'counted') {
        this.#countMove(group, from, next, isServed);
        return next;
      }
    }
    if (from !== null && dispatch.tunnel === null) this.#enter(dispatch, from);
    return null;
  }

  #countMove(group: TunnelGroup<Tunnel>, from: Tunnel | null, to: Tunnel, wasServed: boolean): void {
    const { dispatcher } = this.#given;
    if (from === null) dispatcher.dispatched(to);
    else if (!wasServed) dispatcher.moved(from, to);
    // The one before has served the connection, too: this is a dispatch of its own where that one has come to its end.
    else if (!dispatcher.stays(group, from)) dispatcher.dispatched(to);
  }
}

/** null: a proxy's connection is nobody's alone. */
const countedFor = ({ facts }: Dispatch): string | null => (facts.isProxy ? null : facts.address);

const refusalOf = (verdict: Exclude<ConnectionVerdict, { kind: 'counted' }>): LocalAnswer => {
  const code = verdict.kind === 'tunnel-full' ? 'CONNECTIONS_PER_TUNNEL' : 'CONNECTIONS_PER_ADDRESS';
  return { fault: new Fault(code, { limit: verdict.limit }), retryAfterSecs: RETRY_AFTER_SECS };
};

/** A client that dials new carriers is waited for only when nobody else is there. */
const isAtHand = (group: TunnelGroup<Tunnel>, { session }: Tunnel): boolean =>
  group.healthyCount === 1 || (session.mux?.liveCarriers ?? 0) > 0;
