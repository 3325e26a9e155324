// All relayed connections of all tunnels: admits a visitor's socket within the limits, counts, and knows when the last one is over.
import type { Socket } from 'node:net';
import type { ConnectionCounts } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { adoptSocket } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Logger } from '@tunnel/runtime';
import { hostPort, plainAddress } from '../ingress/peer-address.ts';
import type { Tunnel } from '../pool/tunnel.ts';
import { RefusalLog } from './refusal-log.ts';
import { RelayConnection, type RelayConnectionOwner } from './relay-connection.ts';
import { type RefusalReason, RelayTotals } from './relay-totals.ts';

interface RelayOptions {
  /** Shared with the HTTP ingress: an address is one address on every port. */
  readonly counts: ConnectionCounts;
  readonly logger: Logger;
  /** Milliseconds, for spacing log lines. */
  readonly now: () => number;
}

const SHUTTING_DOWN: StreamReason = { code: 'shutting-down', text: 'the edge is shutting down' };

export class Relay implements RelayConnectionOwner {
  readonly totals = new RelayTotals();
  readonly #counts: ConnectionCounts;
  readonly #log: RefusalLog;
  readonly #live = new Set<RelayConnection>();
  #idleWaiters: (() => void)[] = [];

  constructor(options: RelayOptions) {
    this.#counts = options.counts;
    this.#log = new RefusalLog(options.logger, options.now);
  }

  get connections(): number {
    return this.#live.size;
  }

  /** Takes over an accepted, paused socket. */
  carry(socket: Socket, tunnel: Tunnel): void {
    const { remoteAddress, remotePort } = socket;
    // Gone between the kernel's accept and ours.
    if (remoteAddress === undefined || remotePort === undefined) {
      socket.destroy();
      return;
    }
    const address = plainAddress(remoteAddress);
    if (!this.#admit(socket, tunnel, address)) return;
    const connection = new RelayConnection({ end: adoptSocket(socket), address }, tunnel, this);
    this.#live.add(connection);
    connection.start(hostPort(address, remotePort));
  }

  /** A connection to a port whose tunnel has just gone. */
  turnAway(socket: Socket, port: number): void {
    this.#turnAway(socket, 'no-tunnel', { port }, new Fault('TUNNEL_CLOSED'));
  }

  #admit(socket: Socket, tunnel: Tunnel, address: string): boolean {
    const verdict = this.#counts.opened(tunnel.tunnelId, address);
    if (verdict.kind === 'counted') return true;
    const { limit } = verdict;
    const fields = { tunnel_id: tunnel.tunnelId, visitor: address, limit };
    if (verdict.kind === 'tunnel-full') {
      this.#turnAway(socket, 'tunnel-limit', fields, new Fault('CONNECTIONS_PER_TUNNEL', { limit }));
    } else {
      this.#turnAway(socket, 'address-limit', fields, new Fault('CONNECTIONS_PER_ADDRESS', { limit }));
    }
    return false;
  }

  #turnAway(socket: Socket, reason: RefusalReason, fields: object, fault: Fault): void {
    this.totals.countRefusal(reason);
    this.#log.note(reason, { code: fault.code, ...fields }, `a visitor was turned away: ${fault.message}`);
    socket.resetAndDestroy();
  }

  /** Ends what a drain did not wait for. */
  resetAll(): void {
    for (const connection of this.#live) connection.reset(SHUTTING_DOWN);
  }

  /** Settles when no connection is left; at once when there is none. */
  whenIdle(): Promise<void> {
    if (this.#live.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  // ---- from the connections ----

  onRequest(): void {
    this.totals.requests += 1;
  }

  onBytes(toClient: number, toVisitor: number): void {
    this.totals.bytesToClient += toClient;
    this.totals.bytesToVisitor += toVisitor;
  }

  onRefused({ tunnel, address }: RelayConnection, reason: RefusalReason, text: string): void {
    this.totals.countRefusal(reason);
    this.#log.note(reason, { tunnel_id: tunnel.tunnelId, visitor: address }, `a visitor could not be served: ${text}`);
  }

  onOver(connection: RelayConnection): void {
    this.#live.delete(connection);
    this.#counts.closed(connection.tunnel.tunnelId, connection.address);
    if (this.#live.size > 0) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}
