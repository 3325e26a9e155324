// A visitor's relayed connection: opens a stream to a tunnel's client, waits for the answer, then joins both. Until a client confirms that
// its local service is reachable, no bytes were sent, so another member can be tried.

import type { AcceptedConnection } from '@tunnel/http-shell';
import type { ByteDuplex } from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import type { ConnectionState, HeldConnection } from '@tunnel/rules/admission';
import type { ListNode } from '@tunnel/rules/collections';
import type { FailedMembers, Lease } from '../../routing/balancer.ts';
import type { Route } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import { PreconnectBuffer } from './preconnect-buffer.ts';
import type { Relay } from './relay.ts';
import type { RefusalReason } from './relay-totals.ts';
import { RelayedStream } from './relayed-stream.ts';

const MADE_ROOM: StreamReason = {
  code: 'cancelled',
  text: 'the edge is full and closed this connection to make room for another visitor',
};
const VISITOR_LEFT: StreamReason = { code: 'cancelled', text: 'the visitor disconnected' };
const NO_CARRIER: StreamReason = { code: 'carrier-lost', text: 'the client is not accepting connections right now' };

export interface RelayConnectionOptions {
  readonly accepted: AcceptedConnection;
  readonly route: Route;
  readonly lease: Lease;
  readonly member: Tunnel;
  readonly address: string;
  readonly visitorName: string;
  /** Public host:port that the visitor reached. Empty if no client needs it. */
  readonly publicAddress: string;
  /** Bytes already read from the visitor, or null. */
  readonly first: Buffer | null;
}

export class RelayConnection extends RelayedStream implements HeldConnection {
  readonly accepted: AcceptedConnection;
  readonly route: Route;
  /** IP address of the visitor without the port, used for counting. */
  readonly address: string;
  readonly lease: Lease;
  /** Members that did not accept the connection, or null. Managed by the owner. */
  failed: FailedMembers | null = null;
  /** List node in the owner's set of open connections. Managed by the owner. */
  amongLive: ListNode<RelayConnection> | null = null;
  protected readonly owner: Relay;
  protected readonly near: PreconnectBuffer;
  /** Visitor's host:port as sent to the client. Cleared after the stream is open. */
  #visitorName: string;
  #publicAddress: string;
  #activeAtMs: number;

  constructor(visitor: ByteDuplex, options: RelayConnectionOptions, owner: Relay) {
    super(options.member);
    this.accepted = options.accepted;
    this.route = options.route;
    this.address = options.address;
    this.lease = options.lease;
    this.#visitorName = options.visitorName;
    this.#publicAddress = options.publicAddress;
    this.owner = owner;
    this.#activeAtMs = owner.now();
    this.near = new PreconnectBuffer(visitor, this, options.first);
  }

  /** Always false: an open stream is never idle, because a terminal can be silent for hours. */
  get isIdle(): boolean {
    return false;
  }

  get activeAtMs(): number {
    return this.#activeAtMs;
  }

  describe(): ConnectionState {
    const waitsFor = this.state === 'opening' ? 'the client to open the connection' : 'either side';
    return { phase: this.state, waitsFor, tunnelId: this.member.tunnelId };
  }

  close(): void {
    this.reset(MADE_ROOM);
  }

  start(): void {
    this.near.hold();
    if (this.state !== 'over') this.#open(this.member);
  }

  // ---- finding a member ----

  #open(first: Tunnel): void {
    for (let member: Tunnel | null = first; member !== null; ) {
      if (this.ask(member, this.#headFor(member))) return;
      member = this.#next('no-carrier', NO_CARRIER);
    }
  }

  #headFor({ tunnelId, proxyProtocol }: Tunnel): StreamHead {
    const visitor = this.#visitorName;
    const publicAddress = this.#publicAddress;
    return proxyProtocol === null || publicAddress === ''
      ? { tunnelId, visitor }
      : { tunnelId, visitor, publicAddress };
  }

  /** Returns the next member to try, or null if no other member is available. The owner then takes over the visitor's end. */
  #next(counted: RefusalReason, reason: StreamReason): Tunnel | null {
    const next = this.owner.retryOnNextMember(this);
    if (next !== null) return next;
    this.end();
    this.owner.onUnserved(this, this.near, counted, reason);
    return null;
  }

  protected override onServed(): void {
    this.failed = null;
    this.#visitorName = '';
    this.#publicAddress = '';
    this.owner.onServed(this);
  }

  protected override onUnserved(reason: StreamReason): void {
    const next = this.#next(reason.code, reason);
    if (next !== null) this.#open(next);
  }

  // ---- events of the visitor ----

  /** Called when the visitor reset its connection before the stream to the client was open. */
  onLeft(): void {
    this.leave(VISITOR_LEFT);
  }

  override onBytes(direction: 'a-to-b' | 'b-to-a', bytes: number): void {
    this.#activeAtMs = this.owner.now();
    super.onBytes(direction, bytes);
  }

  protected override onOver(): void {
    this.owner.onOver(this);
  }
}
