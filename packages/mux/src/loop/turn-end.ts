// When the small frames that carriers have gathered leave: at the end of the loop's turn, all of one carrier in one write, and before the next piece of
// bulk that the turn moves. A piece takes as long as a message needs for all the rest of its way, and it would lie in front of it.

/** What throws in it, it keeps to itself. */
export interface TurnEndListener {
  onTurnEnd(): void;
}

export class TurnEnd {
  readonly #soon: (run: () => void) => void;
  #waiting: TurnEndListener[] = [];
  #isScheduled = false;

  constructor(soon: (run: () => void) => void = setImmediate) {
    this.#soon = soon;
  }

  /** Once, until it was told. */
  tell(listener: TurnEndListener): void {
    this.#waiting.push(listener);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#soon(this.#onEnd);
  }

  /** A piece of bulk has come, and is about to be written. */
  beforeBulk(): void {
    if (this.#waiting.length > 0) this.#tellAll();
  }

  readonly #onEnd = (): void => {
    this.#isScheduled = false;
    this.#tellAll();
  };

  #tellAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const listener of waiting) listener.onTurnEnd();
  }
}

/** All carriers and sockets of a process share its one loop. */
export const turnEnd = new TurnEnd();
