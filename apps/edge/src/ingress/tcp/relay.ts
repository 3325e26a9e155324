// All relayed connections of all tunnels: checks the policy and the limits for a visitor's socket, keeps the totals, and reports when the
// last connection has closed.

import { Fault } from '@tunnel/errors';
import type { AcceptedConnection } from '@tunnel/http-shell';
import { type AcceptedSocket, adoptAccepted, type ByteDuplex, type ReportInternalError } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { LinkedSet } from '@tunnel/rules/collections';
import { hostPort, plainAddress } from '@tunnel/rules/net';
import { type Clock, type Logger, LogLimiter, readOncePerTurn } from '@tunnel/runtime';
import type { PolicyGate } from '../../policy/policy-gate.ts';
import { type Balancer, FailedMembers, Lease, type Refusal } from '../../routing/balancer.ts';
import { isGroup, type Route } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import { faultOfRefusal } from '../../upstream/upstream.ts';
import { RelayConnection } from './relay-connection.ts';
import { type RefusalReason, RelayTotals } from './relay-totals.ts';

/** Sends a reason to a visitor without a serving member, if the visitor's protocol allows it. */
export interface UnservedVisitor {
  start(): void;
  reset(reason: StreamReason): void;
}

/** Answers a visitor that no member serves. Takes over the connection until it calls `onOver`, exactly once. */
export type AnswerUnserved = (visitor: ByteDuplex, fault: Fault, onOver: () => void) => UnservedVisitor;

export interface RelayOptions {
  readonly balancer: Balancer;
  /** Checks visitors against policies. Undefined on an edge without policies. */
  readonly policies?: Pick<PolicyGate, 'admits'> | undefined;
  readonly answerUnserved: AnswerUnserved;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly report: ReportInternalError;
  /** Called when a connection has closed and all its bytes are counted. */
  readonly onStreamEnd?: () => void;
}

const SHUTTING_DOWN: StreamReason = { code: 'shutting-down', text: 'the edge is shutting down' };
const UNSERVED: StreamReason = { code: 'cancelled', text: 'no service for this connection' };

export class Relay {
  readonly totals = new RelayTotals();
  readonly now: () => number;
  readonly report: ReportInternalError;
  readonly #balancer: Balancer;
  readonly #policies: Pick<PolicyGate, 'admits'> | undefined;
  readonly #answerUnserved: AnswerUnserved;
  readonly #clock: Clock;
  readonly #log: LogLimiter;
  readonly #onStreamEnd: () => void;
  readonly #live = new LinkedSet<RelayConnection>();
  readonly #unserved = new Set<UnservedVisitor>();
  #isDraining = false;
  #idleWaiters: (() => void)[] = [];

  constructor({ balancer, policies, answerUnserved, logger, clock, report, onStreamEnd = () => {} }: RelayOptions) {
    this.report = report;
    this.#balancer = balancer;
    this.#policies = policies;
    this.#answerUnserved = answerUnserved;
    this.#clock = clock;
    this.now = readOncePerTurn(clock);
    this.#onStreamEnd = onStreamEnd;
    this.#log = new LogLimiter(logger, () => clock.monotonic());
  }

  get connections(): number {
    return this.#live.size + this.#unserved.size;
  }

  /** Takes over an accepted socket. `first` holds all bytes read so far, or null. */
  carry(socket: AcceptedSocket, accepted: AcceptedConnection, route: Route, first: Buffer | null = null): void {
    const { remoteAddress, remotePort } = socket;
    // The visitor disconnected between the kernel's accept and the callback.
    if (remoteAddress === undefined || remotePort === undefined) {
      socket.destroy();
      return;
    }
    const address = plainAddress(remoteAddress);
    // A visitor denied by the policy is not counted for the tunnel, and gets no reason.
    if (this.#policies?.admits(route, address) === false) return this.#deny(socket, route, address);
    const lease = new Lease();
    const refusal = this.#balancer.acquire(lease, route);
    if (refusal !== null || lease.member === null) return this.#refuse(socket, route, address, refusal);
    const { member } = lease;
    const visitorName = hostPort(address, remotePort);
    const given = {
      accepted,
      route,
      lease,
      member,
      address,
      visitorName,
      publicAddress: publicAddressOf(socket, member),
      first,
    };
    const connection = new RelayConnection(adoptAccepted(socket), given, this);
    accepted.served = connection;
    connection.amongLive = this.#live.add(connection);
    connection.start();
  }

  #deny(socket: AcceptedSocket, route: Route, address: string): void {
    this.#turnAway(socket, 'policy', { ...fieldsOf(route), visitor: address }, new Fault('POLICY_DENIED'));
  }

  #refuse(socket: AcceptedSocket, route: Route, address: string, refusal: Refusal | null): void {
    if (refusal === null) return;
    const { reason, fault } = refusal;
    const fields = { ...fieldsOf(route), visitor: address, ...fault.values };
    if (reason !== 'no-healthy') return this.#turnAway(socket, reason, fields, fault);
    this.#note(reason, { code: fault.code, ...fields }, `visitor rejected: ${fault.message}`);
    this.#answer(adoptAccepted(socket), route, fault);
  }

  /** Rejects a connection to a port of a tunnel that has just closed. */
  turnAway(socket: AcceptedSocket, port: number): void {
    this.#turnAway(socket, 'no-tunnel', { port }, new Fault('TUNNEL_CLOSED'));
  }

  /** Rejects a visitor of a tls tunnel with a disconnected client. */
  turnAwayFrom(socket: AcceptedSocket): void {
    this.#turnAway(socket, 'no-tunnel', {}, new Fault('TUNNEL_AWAY'));
  }

  #turnAway(socket: AcceptedSocket, reason: RefusalReason, fields: object, fault: Fault): void {
    this.#note(reason, { code: fault.code, ...fields }, `visitor rejected: ${fault.message}`);
    socket.resetAndDestroy();
  }

  #note(reason: RefusalReason, fields: object, text: string): void {
    this.totals.countRefusal(reason);
    this.#log.log('warn', reason, { reason, ...fields }, text);
  }

  /** Passes the visitor's end to the fallback. The connection counts for the route until the fallback has ended. */
  #answer(visitor: ByteDuplex, route: Route, fault: Fault): void {
    // A visitor that sent a ClientHello cannot read an unencrypted error response.
    if (this.#isDraining || route.protocol === 'tls' || !this.#balancer.countUnserved(route)) {
      visitor.reset(UNSERVED);
      return;
    }
    const unserved = this.#answerUnserved(visitor, fault, () => {
      this.#balancer.uncountUnserved(route);
      this.#unserved.delete(unserved);
      this.#tellIfIdle();
    });
    this.#unserved.add(unserved);
    unserved.start();
  }

  /** Stops accepting visitors. Visitors that no member serves are reset. */
  drain(): void {
    this.#isDraining = true;
    for (const unserved of this.#unserved) unserved.reset(SHUTTING_DOWN);
  }

  /** Resets all relayed connections, even if a drain has not finished. */
  resetAll(): void {
    this.drain();
    for (const connection of [...this.#live]) connection.reset(SHUTTING_DOWN);
  }

  /** Resolves when no relayed connection is left. */
  whenIdle(): Promise<void> {
    if (this.connections === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  // ---- calls from connections ----

  /** Returns the next member after a member did not accept the connection, or null if no other member is available. */
  retryOnNextMember(connection: RelayConnection): Tunnel | null {
    const nowMs = this.#clock.monotonic();
    connection.failed ??= new FailedMembers(nowMs);
    connection.failed.members.push(connection.member);
    return this.#balancer.retryOnNextMember(connection.lease, connection.failed, nowMs, 'any');
  }

  /** Called when the member's client has opened the local connection. */
  onServed({ member }: RelayConnection): void {
    member.counters.addRequest();
    this.totals.requests += 1;
  }

  onBytes(toClient: number, toVisitor: number): void {
    this.totals.bytesToClient += toClient;
    this.totals.bytesToVisitor += toVisitor;
  }

  /**
   * Called when no member accepted the connection. The relay takes over the visitor's end. Like onOver, this is the last call of a
   * connection.
   */
  onUnserved(connection: RelayConnection, visitor: ByteDuplex, counted: RefusalReason, reason: StreamReason): void {
    const { accepted, route, member, address, lease } = connection;
    accepted.served = null;
    const fields = { ...fieldsOf(route), tunnel_id: member.tunnelId, visitor: address };
    this.#balancer.release(lease);
    this.#note(counted, fields, `visitor connection failed: ${reason.text}`);
    this.#answer(visitor, route, faultOfRefusal(reason));
    this.#live.delete(connection.amongLive);
    this.#tellIfIdle();
  }

  onOver(connection: RelayConnection): void {
    this.#balancer.release(connection.lease);
    this.#live.delete(connection.amongLive);
    this.#onStreamEnd();
    this.#tellIfIdle();
  }

  #tellIfIdle(): void {
    if (this.connections > 0) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}

/**
 * Returns the public host:port reached by the visitor, for clients that send a PROXY protocol header. In a group, any member may be next.
 * Returns '' if no client needs it.
 */
const publicAddressOf = (socket: AcceptedSocket, { proxyProtocol, group }: Tunnel): string => {
  if (proxyProtocol === null && group === null) return '';
  const { localAddress, localPort } = socket;
  return localAddress === undefined || localPort === undefined ? '' : hostPort(plainAddress(localAddress), localPort);
};

const fieldsOf = (route: Route): object =>
  isGroup(route) ? { group: route.name, label: route.label } : { tunnel_id: route.tunnelId };
