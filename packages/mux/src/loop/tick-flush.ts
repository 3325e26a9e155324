// Decides when collected small frames are sent: at the end of the event loop turn, with one write per carrier, or before the next piece of
// bulk data in the turn. Writing a piece of bulk takes as long as the rest of a small message's path, so small messages go first.

/** Listener called at the end of an event loop turn. Must handle its own exceptions. */
export interface TickFlushListener {
  onTickFlush(): void;
}

export class TickFlush {
  readonly #soon: (run: () => void) => void;
  #waiting: TickFlushListener[] = [];
  #isScheduled = false;

  constructor(soon: (run: () => void) => void = setImmediate) {
    this.#soon = soon;
  }

  /** Registers a listener for one call at the end of the event loop turn. */
  tell(listener: TickFlushListener): void {
    this.#waiting.push(listener);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#soon(this.#onEnd);
  }

  /**
   * Calls the waiting listeners now instead of at the end of the turn: before a piece of received bulk data is written, and after the pings
   * of a session, whose blocks the pings of the next session can then reuse.
   */
  flushNow(): void {
    if (this.#waiting.length > 0) this.#tellAll();
  }

  readonly #onEnd = (): void => {
    this.#isScheduled = false;
    this.#tellAll();
  };

  #tellAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const listener of waiting) listener.onTickFlush();
  }
}

/** Calls listeners at the end of an event loop turn. Shared by all carriers and sockets, because a process has a single event loop. */
export const tickFlush = new TickFlush();
