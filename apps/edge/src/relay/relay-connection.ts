// One visitor's connection: opens a stream towards a tunnel's client, waits for its answer, then joins the two. While no client
// has said that its local service is there, nothing was sent, and another member may be asked.
// One object per connection takes all callbacks, so that an idle connection costs no closures and no timers.
import {
  type ByteDuplex,
  type MuxStream,
  type OpenAnswer,
  type PendingStream,
  type Splice,
  type SpliceHandlers,
  splice,
} from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Tunnel } from '../pool/tunnel.ts';
import type { Target } from '../pool/tunnel-table.ts';
import { PreconnectBuffer, type PreconnectBufferOwner } from './preconnect-buffer.ts';
import type { RefusalReason } from './relay-totals.ts';

type State = 'opening' | 'joined' | 'over';

export interface RelayConnectionOwner {
  /** Its tunnel did not take it: the one that has it instead, or null when there is no other. */
  another(connection: RelayConnection): Tunnel | null;
  /** Its tunnel's client has opened the local connection. */
  onServed(connection: RelayConnection): void;
  onBytes(toClient: number, toVisitor: number): void;
  /** Nobody took it; the visitor's end is the owner's now. The last call, as onOver is. */
  onUnserved(connection: RelayConnection, visitor: ByteDuplex, counted: RefusalReason, reason: StreamReason): void;
  onOver(connection: RelayConnection): void;
}

export interface Visitor {
  readonly end: ByteDuplex;
  /** What the connection is counted by: without the port. */
  readonly address: string;
  /** host:port, as the client is told. */
  readonly name: string;
}

const VISITOR_LEFT: StreamReason = { code: 'cancelled', text: 'the visitor left' };
const NO_CARRIER: StreamReason = { code: 'carrier-lost', text: 'the client takes no connections now' };
const NONE: readonly Tunnel[] = [];

export class RelayConnection implements PreconnectBufferOwner, OpenAnswer, SpliceHandlers {
  readonly target: Target;
  readonly address: string;
  readonly #owner: RelayConnectionOwner;
  readonly #visitor: PreconnectBuffer;
  /** What the next client is told; nobody needs it once the stream is open. */
  #visitorName: string;
  #state: State = 'opening';
  #tunnel: Tunnel;
  #tried: readonly Tunnel[] = NONE;
  /** When the first of those failed; the owner's to set and to read. */
  failedSinceMs = 0;
  #opening: PendingStream | null = null;
  #splice: Splice | null = null;

  constructor(visitor: Visitor, target: Target, tunnel: Tunnel, owner: RelayConnectionOwner) {
    this.target = target;
    this.address = visitor.address;
    this.#visitorName = visitor.name;
    this.#tunnel = tunnel;
    this.#owner = owner;
    this.#visitor = new PreconnectBuffer(visitor.end, this);
  }

  /** The one that has it, or had it last. */
  get tunnel(): Tunnel {
    return this.#tunnel;
  }

  /** Those that did not take it. */
  get tried(): readonly Tunnel[] {
    return this.#tried;
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
      const tunnel = this.#tunnel;
      const head = { tunnelId: tunnel.tunnelId, visitor: this.#visitorName };
      const opening = tunnel.session.mux?.open(head, this) ?? null;
      // A carrier that breaks under this very stream answers within the call.
      if (this.#state !== 'opening' || this.#tunnel !== tunnel) return;
      if (opening !== null) {
        this.#opening = opening;
        return;
      }
      if (!this.#moveOn('no-carrier', NO_CARRIER)) return;
    }
  }

  #moveOn(counted: RefusalReason, reason: StreamReason): boolean {
    this.#tried = [...this.#tried, this.#tunnel];
    const next = this.#owner.another(this);
    if (next !== null) {
      this.#tunnel = next;
      return true;
    }
    this.#end();
    this.#owner.onUnserved(this, this.#visitor, counted, reason);
    return false;
  }

  onOpened(stream: MuxStream): void {
    this.#opening = null;
    this.#state = 'joined';
    this.#tried = NONE;
    this.#visitorName = '';
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
    this.#tunnel.counters.bytes += bytes;
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
    this.#end();
    this.#owner.onOver(this);
  }

  #end(): void {
    this.#state = 'over';
    this.#opening = null;
    this.#splice = null;
  }
}
