// A stream to a tunnel's client: requested, then joined byte for byte with the end of the visitor or peer. A close or reset on either side
// is passed to the other side, and the owner is notified once when the stream has ended. A single object per connection receives all
// callbacks, so that an idle connection needs no closures and no timers.
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
  /** End of the visitor or peer. Joined with the client's stream after it is open. */
  protected abstract readonly near: ByteDuplex;
  /** Owner of relayed streams, which counts their bytes and reports internal errors. */
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

  /** Called when the client has accepted the stream, just before both ends are joined. */
  protected abstract onServed(): void;
  /** Called when the member's client did not accept the stream. The subclass calls end() or finish(), or asks another member. */
  protected abstract onUnserved(reason: StreamReason): void;
  /** Called when the relayed stream has ended: last, and exactly once. */
  protected abstract onOver(): void;

  /** Tunnel of the client that has the relayed stream, or had it last. */
  get member(): Tunnel {
    return this.#member;
  }

  protected get state(): State {
    return this.#state;
  }

  /**
   * Requests a stream. Returns false if the member's client currently accepts no streams. Otherwise calls onServed or onUnserved, perhaps
   * before it returns.
   */
  protected ask(member: Tunnel, head: StreamHead): boolean {
    this.#member = member;
    const opening = member.upstream.open(head, this);
    // If the carrier fails during open(), the answer has come within the call, and another member may have been asked since.
    if (this.#state !== 'opening' || this.#member !== member) return true;
    this.#opening = opening;
    return opening !== null;
  }

  /** Resets both sides of the relayed stream, in any state. */
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

  /** Cancels opening a stream to the client, because the visitor or peer has disconnected. */
  protected leave(reason: StreamReason): void {
    this.#opening?.reset(reason);
    this.finish();
  }

  // ---- client's answer ----

  onOpened(stream: MuxStream): void {
    this.#opening = null;
    this.#state = 'joined';
    this.onServed();
    const joined = splice(this.near, stream, this);
    // The kept bytes may have been the whole conversation, so the splice can be finished already.
    if (this.#state === 'joined') this.#splice = joined;
  }

  onRefused(reason: StreamReason): void {
    if (this.#state !== 'opening') return;
    this.#opening = null;
    this.onUnserved(reason);
  }

  // ---- joined streams ----

  onBytes(direction: 'a-to-b' | 'b-to-a', bytes: number): void {
    this.#member.counters.addBytes(bytes);
    if (direction === 'a-to-b') this.owner.onBytes(bytes, 0);
    else this.owner.onBytes(0, bytes);
  }

  onDone(): void {
    this.finish();
  }

  /** Resets both sides after an internal error, because truncated data would look complete. */
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

  /** Ends the relayed stream without calling onOver. The caller notifies the owner. */
  protected end(): void {
    this.#state = 'over';
    this.#opening = null;
    this.#splice = null;
  }
}
