// Lets requests begin a few in each turn of the event loop: to begin one takes a tenth of a millisecond, and frames wait meanwhile.
import { EDGE_LIMITS } from '../limits.ts';

export class StartTurns {
  readonly #waiting: (() => void)[] = [];

  /** Settles when it is the caller's turn, in the order of the calls. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(() => this.#run());
    });
  }

  #run(): void {
    for (const start of this.#waiting.splice(0, EDGE_LIMITS.ALERT_STARTS_PER_TURN)) start();
    if (this.#waiting.length > 0) setImmediate(() => this.#run());
  }
}
