// All relayed connections of all tunnels: admits a visitor's socket within the limits, counts, and knows when the last one is over.
import type { Socket } from 'node:net';
import { type ConnectionCounts, plainAddress } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { adoptSocket, type ByteDuplex } from '@tunnel/mux';
import { type StreamReason } from '@tunnel/protocol';
import type { Clock, Logger } from '@tunnel/runtime';
import { faultOfRefusal } from '../ingress/http/refusal-fault.ts';
import { hostPort } from '../ingress/peer-address.ts';
import { EDGE_LIMITS } from '../limits.ts';
import type { Dispatcher } from '../pool/dispatcher.ts';
import type { Tunnel } from '../pool/tunnel.ts';
import { isGroup, type Target } from '../pool/tunnel-table.ts';
import { Assigner, targetId } from './assigner.ts';
import { HttpErrorFallback, type HttpErrorFallbackOwner, UNSERVED } from './http-error-fallback.ts';
import { RefusalLog } from './refusal-log.ts';
import { RelayConnection, type RelayConnectionOwner } from './relay-connection.ts';
import { type RefusalReason, RelayTotals } from './relay-totals.ts';

interface RelayOptions {
  readonly dispatcher: Pick<Dispatcher, 'choose' | 'dispatched' | 'moved'>;
  /** Shared with the HTTP ingress: an address is one address on every port. */
  readonly counts: ConnectionCounts;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A connection is over, and all its bytes are counted. */
  readonly onStreamEnd?: () => void;
}

const SHUTTING_DOWN: StreamReason = { code: 'shutting-down', text: 'the edge is shutting down' };
const UNTRIED: readonly Tunnel[] = [];

export class Relay implements RelayConnectionOwner, HttpErrorFallbackOwner {
  readonly totals = new RelayTotals();
  readonly #dispatcher: RelayOptions['dispatcher'];
  readonly #assigner: Assigner;
  readonly #clock: Clock;
  readonly #log: RefusalLog;
  readonly #onStreamEnd: () => void;
  readonly #live = new Set<RelayConnection>();
  readonly #unserved = new Set<HttpErrorFallback>();
  #isDraining = false;
  #idleWaiters: (() => void)[] = [];

  constructor({ dispatcher, counts, logger, clock, onStreamEnd = () => {} }: RelayOptions) {
    this.#dispatcher = dispatcher;
    this.#assigner = new Assigner(dispatcher, counts);
    this.#clock = clock;
    this.#onStreamEnd = onStreamEnd;
    this.#log = new RefusalLog(logger, () => clock.monotonic());
  }

  get connections(): number {
    return this.#live.size + this.#unserved.size;
  }

  /** Takes over an accepted, paused socket. */
  carry(socket: Socket, target: Target): void {
    const { remoteAddress, remotePort } = socket;
    // Gone between the kernel's accept and ours.
    if (remoteAddress === undefined || remotePort === undefined) {
      socket.destroy();
      return;
    }
    const address = plainAddress(remoteAddress);
    const assignment = this.#assigner.assign(target, address, UNTRIED);
    if ('tunnel' in assignment) {
      const { tunnel } = assignment;
      this.#dispatcher.dispatched(tunnel);
      const visitor = { end: adoptSocket(socket), address, name: hostPort(address, remotePort) };
      const connection = new RelayConnection(visitor, target, tunnel, this);
      this.#live.add(connection);
      connection.start();
      return;
    }
    const { reason, fault } = assignment;
    const fields = { ...fieldsOf(target), visitor: address, ...fault.values };
    if (reason !== 'no-healthy') return this.#turnAway(socket, reason, fields, fault);
    this.#note(reason, { code: fault.code, ...fields }, `a visitor was turned away: ${fault.message}`);
    this.#answerInHttp(adoptSocket(socket), target, address, fault);
  }

  /** A connection to a port whose tunnel has just gone. */
  turnAway(socket: Socket, port: number): void {
    this.#turnAway(socket, 'no-tunnel', { port }, new Fault('TUNNEL_CLOSED'));
  }

  #turnAway(socket: Socket, reason: RefusalReason, fields: object, fault: Fault): void {
    this.#note(reason, { code: fault.code, ...fields }, `a visitor was turned away: ${fault.message}`);
    socket.resetAndDestroy();
  }

  #note(reason: RefusalReason, fields: object, text: string): void {
    this.totals.countRefusal(reason);
    this.#log.note(reason, fields, text);
  }

  #answerInHttp(end: ByteDuplex, target: Target, address: string, fault: Fault): void {
    if (this.#isDraining || this.#assigner.countUnserved(target, address) !== null) {
      end.reset(UNSERVED);
      return;
    }
    const countedFor = targetId(target);
    const words = new HttpErrorFallback(end, { address, countedFor, fault, clock: this.#clock, owner: this });
    this.#unserved.add(words);
    words.start();
  }

  /** No visitor comes any more. Those whom nobody serves are not waited for. */
  drain(): void {
    this.#isDraining = true;
    for (const words of this.#unserved) words.reset(SHUTTING_DOWN);
  }

  /** Ends what a drain did not wait for. */
  resetAll(): void {
    this.drain();
    for (const connection of this.#live) connection.reset(SHUTTING_DOWN);
  }

  /** Settles when no connection is left; at once when there is none. */
  whenIdle(): Promise<void> {
    if (this.connections === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  // ---- from the connections ----

  another(connection: RelayConnection): Tunnel | null {
    const { tunnel, address, tried } = connection;
    const now = this.#clock.monotonic();
    this.#assigner.takeBack(tunnel, address);
    if (tried.length === 1) connection.failedSinceMs = now;
    if (now - connection.failedSinceMs >= EDGE_LIMITS.MEMBER_TRIES_MS) return null;
    const assignment = this.#assigner.assign(connection.target, address, tried);
    if (!('tunnel' in assignment)) return null;
    this.#dispatcher.moved(tunnel, assignment.tunnel);
    return assignment.tunnel;
  }

  onServed({ tunnel }: RelayConnection): void {
    tunnel.counters.requests += 1;
    this.totals.requests += 1;
  }

  onBytes(toClient: number, toVisitor: number): void {
    this.totals.bytesToClient += toClient;
    this.totals.bytesToVisitor += toVisitor;
  }

  onUnserved(connection: RelayConnection, visitor: ByteDuplex, counted: RefusalReason, reason: StreamReason): void {
    const { target, tunnel, address } = connection;
    const fields = { ...fieldsOf(target), tunnel_id: tunnel.tunnelId, visitor: address };
    this.#note(counted, fields, `a visitor could not be served: ${reason.text}`);
    this.#answerInHttp(visitor, target, address, faultOfRefusal(reason));
    this.#live.delete(connection);
    this.#tellIfIdle();
  }

  onOver(connection: RelayConnection): void {
    this.#assigner.takeBack(connection.tunnel, connection.address);
    this.#onStreamEnd();
    this.#live.delete(connection);
    this.#tellIfIdle();
  }

  onFallbackOver(words: HttpErrorFallback): void {
    this.#assigner.forgetUnserved(words.countedFor, words.address);
    this.#unserved.delete(words);
    this.#tellIfIdle();
  }

  #tellIfIdle(): void {
    if (this.connections > 0) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}

const fieldsOf = (target: Target): object =>
  isGroup(target) ? { group: target.name, label: target.label } : { tunnel_id: target.tunnelId };
