// Opens that wait for a carrier: between a client's return and its first carrier, and while a lost one is dialled again.
// A visitor who comes just then waits a moment instead of being turned away.
import { type StreamHead, type StreamReason } from '@tunnel/protocol';
import { MUX_LIMITS } from './limits.ts';
import type { MuxStream, OpenAnswer } from './mux-stream.ts';

/** Something under way that can be called off. */
export interface PendingStream {
  reset(reason: StreamReason): void;
}

class QueuedOpen implements PendingStream {
  readonly head: StreamHead;
  readonly answer: OpenAnswer;
  readonly sinceMs: number;
  readonly #owner: Set<QueuedOpen>;
  #stream: MuxStream | null = null;

  constructor(owner: Set<QueuedOpen>, head: StreamHead, answer: OpenAnswer, sinceMs: number) {
    this.#owner = owner;
    this.head = head;
    this.answer = answer;
    this.sinceMs = sinceMs;
  }

  begun(stream: MuxStream): void {
    this.#stream = stream;
  }

  reset(reason: StreamReason): void {
    this.#owner.delete(this);
    this.#stream?.reset(reason);
  }
}

export class OpenQueue {
  readonly #waiting = new Set<QueuedOpen>();

  /** null: too many wait already. */
  add(head: StreamHead, answer: OpenAnswer, nowMs: number): PendingStream | null {
    if (this.#waiting.size >= MUX_LIMITS.OPENS_WAITING_MAX) return null;
    const open = new QueuedOpen(this.#waiting, head, answer, nowMs);
    this.#waiting.add(open);
    return open;
  }

  /** A carrier has come: `begin` opens for real, or gives null when it takes no more. */
  begin(begin: (head: StreamHead, answer: OpenAnswer) => MuxStream | null): void {
    for (const open of this.#waiting) {
      const stream = begin(open.head, open.answer);
      if (stream === null) return;
      this.#waiting.delete(open);
      open.begun(stream);
    }
  }

  /** Refuses those that came before `sinceMs`. */
  refuseOlder(sinceMs: number, reason: StreamReason): void {
    for (const open of this.#waiting) {
      // In the order they came: the first young one ends the look.
      if (open.sinceMs > sinceMs) return;
      this.#waiting.delete(open);
      open.answer.onRefused(reason);
    }
  }
}
