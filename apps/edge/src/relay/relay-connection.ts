// One visitor's connection: opens a stream towards the tunnel's client, waits for its answer, then joins the two.
// One object per connection takes all callbacks, so that an idle connection costs no closures and no timers.
import {
  type ByteEnd,
  type MuxStream,
  type OpenAnswer,
  type Opening,
  type Splice,
  type SpliceHandlers,
  splice,
} from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Tunnel } from '../pool/tunnel.ts';
import { HeldEnd, type HeldEndOwner } from './held-end.ts';
import type { RefusalReason } from './relay-totals.ts';

type State = 'opening' | 'joined' | 'over';

export interface RelayConnectionOwner {
  onRequest(): void;
  onBytes(toClient: number, toVisitor: number): void;
  onRefused(connection: RelayConnection, reason: RefusalReason, text: string): void;
  /** Exactly once. */
  onOver(connection: RelayConnection): void;
}

export interface Visitor {
  readonly end: ByteEnd;
  /** What the connection is counted by: without the port. */
  readonly address: string;
}

const VISITOR_LEFT: StreamReason = { code: 'cancelled', text: 'the visitor left' };
const NO_CARRIER: StreamReason = { code: 'carrier-lost', text: 'the client takes no connections now' };

export class RelayConnection implements HeldEndOwner, OpenAnswer, SpliceHandlers {
  readonly tunnel: Tunnel;
  readonly address: string;
  readonly #owner: RelayConnectionOwner;
  readonly #visitor: HeldEnd;
  #state: State = 'opening';
  #opening: Opening | null = null;
  #splice: Splice | null = null;

  constructor(visitor: Visitor, tunnel: Tunnel, owner: RelayConnectionOwner) {
    this.tunnel = tunnel;
    this.address = visitor.address;
    this.#owner = owner;
    this.#visitor = new HeldEnd(visitor.end, this);
  }

  /** `visitorName` is host:port, as the client is told. */
  start(visitorName: string): void {
    this.tunnel.counters.openConnections += 1;
    this.#visitor.hold();
    if (this.#isOver()) return;
    const head = { tunnelId: this.tunnel.tunnelId, visitor: visitorName };
    const opening = this.tunnel.session.mux?.open(head, this) ?? null;
    if (this.#isOver()) return;
    if (opening === null) {
      this.#refuse('no-carrier', NO_CARRIER);
      return;
    }
    this.#opening = opening;
    this.tunnel.counters.requests += 1;
    this.#owner.onRequest();
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

  // ---- the client's answer ----

  onOpened(stream: MuxStream): void {
    this.#opening = null;
    this.#state = 'joined';
    const joined = splice(this.#visitor, stream, this);
    // What was held may have been all there is: then it is done already.
    if (this.#state === 'joined') this.#splice = joined;
  }

  onRefused(reason: StreamReason): void {
    this.#refuse(reason.code, reason);
  }

  #refuse(counted: RefusalReason, reason: StreamReason): void {
    if (this.#isOver()) return;
    this.#owner.onRefused(this, counted, reason.text);
    this.#visitor.reset(reason);
    this.#finish();
  }

  // ---- the visitor ----

  onLeft(): void {
    this.#opening?.reset(VISITOR_LEFT);
    this.#finish();
  }

  // ---- the two, joined ----

  onBytes(direction: 'a-to-b' | 'b-to-a', bytes: number): void {
    this.tunnel.counters.bytes += bytes;
    if (direction === 'a-to-b') this.#owner.onBytes(bytes, 0);
    else this.#owner.onBytes(0, bytes);
  }

  onDone(): void {
    this.#finish();
  }

  #isOver(): boolean {
    return this.#state === 'over';
  }

  #finish(): void {
    if (this.#isOver()) return;
    this.#state = 'over';
    this.#opening = null;
    this.#splice = null;
    this.tunnel.counters.openConnections -= 1;
    this.#owner.onOver(this);
  }
}
