// A stream towards a tunnel's client on its way: asked for, then joined byte for byte with the end of the visitor or peer it was asked for. Whatever
// happens to one side the other side sees, and the owner is told once that it is over.
// One object per connection takes all callbacks, so that an idle connection costs no closures and no timers.
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
import type { Tunnel } from '../../routing/tunnel.ts';

type State = 'opening' | 'joined' | 'over';

export abstract class RelayedStream implements OpenAnswer, SpliceHandlers {
  /** The end of the visitor or peer. It is joined with the client's stream when that is open. */
  protected abstract readonly near: ByteDuplex;
  /** Counts the bytes of all streams, and reports what throws. */
  protected abstract readonly owner: {
    onBytes(toClient: number, toVisitor: number): void;
    readonly report: ReportInternalError;
  };
  #member: Tunnel;
  #state: State = 'opening';
  #opening: PendingStream | null = null;
  #splice: Splice | null = null;

  constructor(member: Tunnel) {
    this.#member = member;
  }

  /** The client has the stream, which is about to be joined with the near end. */
  protected abstract onServed(): void;
  /** The member's client did not take it. It ends with end() or finish(), or another member is asked. */
  protected abstract onUnserved(reason: StreamReason): void;
  /** The last call. */
  protected abstract onOver(): void;

  /** The tunnel whose client has the stream, or had it last. */
  get member(): Tunnel {
    return this.#member;
  }

  protected get state(): State {
    return this.#state;
  }

  /** Returns false if the member's client takes no streams now. Else the answer comes to onServed or onUnserved, perhaps within the call. */
  protected ask(member: Tunnel, head: StreamHead): boolean {
    this.#member = member;
    const opening = member.upstream.open(head, this);
    // A carrier that breaks under this very stream answers within the call, and the next member may have been asked since.
    if (this.#state !== 'opening' || this.#member !== member) return true;
    this.#opening = opening;
    return opening !== null;
  }

  /** Whatever it is doing, it stops, and both sides see a reset. */
  reset(reason: StreamReason): void {
    if (this.#state === 'joined') {
      this.#splice?.reset(reason);
      return;
    }
    if (this.#state === 'over') return;
    this.#opening?.reset(reason);
    this.near.reset(reason);
    this.finish();
  }

  /** The visitor or peer has left while the stream was opening. */
  protected leave(reason: StreamReason): void {
    this.#opening?.reset(reason);
    this.finish();
  }

  // ---- the client's answer ----

  onOpened(stream: MuxStream): void {
    this.#opening = null;
    this.#state = 'joined';
    this.onServed();
    const joined = splice(this.near, stream, this);
    // The bytes that were held may have been all there is: then it is done already.
    if (this.#state === 'joined') this.#splice = joined;
  }

  onRefused(reason: StreamReason): void {
    if (this.#state !== 'opening') return;
    this.#opening = null;
    this.onUnserved(reason);
  }

  // ---- the two, joined ----

  onBytes(direction: 'a-to-b' | 'b-to-a', bytes: number): void {
    this.#member.counters.addBytes(bytes);
    if (direction === 'a-to-b') this.owner.onBytes(bytes, 0);
    else this.owner.onBytes(0, bytes);
  }

  onDone(): void {
    this.finish();
  }

  /** Bytes are cut off, whichever side they came from: half of them would look whole. */
  abandon(error: unknown, where: string): void {
    const opening = this.#opening;
    const joined = this.#splice;
    try {
      this.owner.report(error, where);
      opening?.reset(BROKEN);
      this.near.reset(BROKEN);
    } finally {
      this.finish();
      joined?.reset(BROKEN);
    }
  }

  protected finish(): void {
    if (this.#state === 'over') return;
    this.end();
    this.onOver();
  }

  /** Over, and onOver does not follow: the caller tells the owner in its own way. */
  protected end(): void {
    this.#state = 'over';
    this.#opening = null;
    this.#splice = null;
  }
}
