// One visitor's connection: opens a stream towards a tunnel's client, waits for its answer, then joins the two. While no client
// has said that its local service is there, nothing was sent, and another member may be asked.
// One object per connection takes all callbacks, so that an idle connection costs no closures and no timers.
import type { ConnectionState, HeldConnection, ListNode } from '@tunnel/core';
import type { AcceptedConnection } from '@tunnel/http-shell';
import {
  BROKEN,
  type ByteDuplex,
  type MuxStream,
  type OpenAnswer,
  type PendingStream,
  type ReportInternalError,
  type Splice,
  type SpliceHandlers,
  splice,
} from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import type { FailedMembers, Lease } from '../../routing/balancer.ts';
import type { Route } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import { PreconnectBuffer, type PreconnectBufferOwner } from './preconnect-buffer.ts';
import type { RefusalReason } from './relay-totals.ts';

type State = 'opening' | 'joined' | 'over';

export interface RelayConnectionOwner {
  readonly now: () => number;
  /** Its member did not take it: the one that has it instead, or null when there is no other. */
  retryOnNextMember(connection: RelayConnection): Tunnel | null;
  /** Its member's client has opened the local connection. */
  onServed(connection: RelayConnection): void;
  onBytes(toClient: number, toVisitor: number): void;
  /** Nobody took it; the visitor's end is the owner's now. The last call, as onOver is. */
  onUnserved(connection: RelayConnection, visitor: ByteDuplex, counted: RefusalReason, reason: StreamReason): void;
  onOver(connection: RelayConnection): void;
  readonly report: ReportInternalError;
}

const MADE_ROOM: StreamReason = { code: 'cancelled', text: 'the edge is full, and made room for another visitor' };
const VISITOR_LEFT: StreamReason = { code: 'cancelled', text: 'the visitor left' };
const NO_CARRIER: StreamReason = { code: 'carrier-lost', text: 'the client takes no connections now' };

export interface RelayConnectionOptions {
  readonly accepted: AcceptedConnection;
  readonly route: Route;
  readonly lease: Lease;
  readonly member: Tunnel;
  readonly address: string;
  readonly visitorName: string;
  /** host:port that it reached; empty: nobody wants to know. */
  readonly publicAddress: string;
  /** What was read of it already. */
  readonly first: Buffer | null;
}

export class RelayConnection implements PreconnectBufferOwner, OpenAnswer, SpliceHandlers, HeldConnection {
  readonly accepted: AcceptedConnection;
  readonly route: Route;
  /** What it is counted by: without the port. */
  readonly address: string;
  readonly lease: Lease;
  /** Those that did not take it; null: none. The owner's to set and to read. */
  failed: FailedMembers | null = null;
  /** Its place among those that live. The owner's, too. */
  amongLive: ListNode<RelayConnection> | null = null;
  readonly #owner: RelayConnectionOwner;
  readonly #visitor: PreconnectBuffer;
  /** host:port, as the next client is told; nobody needs it once the stream is open. */
  #visitorName: string;
  #publicAddress: string;
  #state: State = 'opening';
  #member: Tunnel;
  #opening: PendingStream | null = null;
  #splice: Splice | null = null;
  #activeAtMs: number;

  constructor(visitor: ByteDuplex, given: RelayConnectionOptions, owner: RelayConnectionOwner) {
    this.accepted = given.accepted;
    this.route = given.route;
    this.address = given.address;
    this.lease = given.lease;
    this.#visitorName = given.visitorName;
    this.#publicAddress = given.publicAddress;
    this.#member = given.member;
    this.#owner = owner;
    this.#activeAtMs = owner.now();
    this.#visitor = new PreconnectBuffer(visitor, this, given.first);
  }

  /** The one that has it, or had it last. */
  get member(): Tunnel {
    return this.#member;
  }

  /** A stream is under way as long as it lives: a terminal that stands still is no fault. */
  get isIdle(): boolean {
    return false;
  }

  get activeAtMs(): number {
    return this.#activeAtMs;
  }

  describe(): ConnectionState {
    const waitsFor = this.#state === 'opening' ? 'the client to open it' : 'either side';
    return { phase: this.#state, waitsFor, tunnelId: this.#member.tunnelId };
  }

  close(): void {
    this.reset(MADE_ROOM);
  }

  start(): void {
    this.#visitor.hold();
    if (!this.#isOver()) this.#open();
  }

  /** For the end of a drain: whatever it is doing, it stops, and both sides see a reset. */
  reset(reason: StreamReason): void {
    if (this.#state === 'joined') {
      this.#splice?.reset(reason);
      return;
    }
    if (this.#isOver()) return;
    this.#opening?.reset(reason);
    this.#visitor.reset(reason);
    this.#finish();
  }

  // ---- finding one who takes it ----

  #open(): void {
    for (;;) {
      const member = this.#member;
      const opening = member.upstream.open(this.#headFor(member), this);
      // A carrier that breaks under this very stream answers within the call.
      if (this.#state !== 'opening' || this.#member !== member) return;
      if (opening !== null) {
        this.#opening = opening;
        return;
      }
      if (!this.#moveOn('no-carrier', NO_CARRIER)) return;
    }
  }

  #headFor({ tunnelId, proxyProtocol }: Tunnel): StreamHead {
    const [visitor, publicAddress] = [this.#visitorName, this.#publicAddress];
    return proxyProtocol === null || publicAddress === ''
      ? { tunnelId, visitor }
      : { tunnelId, visitor, publicAddress };
  }

  #moveOn(counted: RefusalReason, reason: StreamReason): boolean {
    const next = this.#owner.retryOnNextMember(this);
    if (next !== null) {
      this.#member = next;
      return true;
    }
    this.#end();
    this.#owner.onUnserved(this, this.#visitor, counted, reason);
    return false;
  }

  onOpened(stream: MuxStream): void {
    this.#opening = null;
    this.#state = 'joined';
    this.failed = null;
    this.#visitorName = '';
    this.#publicAddress = '';
    this.#owner.onServed(this);
    const joined = splice(this.#visitor, stream, this);
    // What was held may have been all there is: then it is done already.
    if (this.#state === 'joined') this.#splice = joined;
  }

  onRefused(reason: StreamReason): void {
    if (this.#state !== 'opening') return;
    this.#opening = null;
    if (this.#moveOn(reason.code, reason)) this.#open();
  }

  // ---- the visitor ----

  onLeft(): void {
    this.#opening?.reset(VISITOR_LEFT);
    this.#finish();
  }

  // ---- the two, joined ----

  onBytes(direction: 'a-to-b' | 'b-to-a', bytes: number): void {
    this.#activeAtMs = this.#owner.now();
    this.#member.counters.addBytes(bytes);
    if (direction === 'a-to-b') this.#owner.onBytes(bytes, 0);
    else this.#owner.onBytes(0, bytes);
  }

  onDone(): void {
    this.#finish();
  }

  /** Bytes are cut off, whichever side they came from: half of them would look whole. */
  abandon(error: unknown, where: string): void {
    const [opening, joined] = [this.#opening, this.#splice];
    try {
      this.#owner.report(error, where);
      opening?.reset(BROKEN);
      this.#visitor.reset(BROKEN);
    } finally {
      this.#finish();
      joined?.reset(BROKEN);
    }
  }

  #isOver(): boolean {
    return this.#state === 'over';
  }

  #finish(): void {
    if (this.#isOver()) return;
    this.#end();
    this.#owner.onOver(this);
  }

  #end(): void {
    this.#state = 'over';
    this.#opening = null;
    this.#splice = null;
  }
}
