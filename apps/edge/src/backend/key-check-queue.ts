// Limits the rate of key checks at the platform: after a restart of the edge, all clients connect at once and none of their keys is
// cached. At most a fixed number of checks start per second. Further checks wait in order of arrival, as long as their clients wait.
import { FairTurns, SlidingWindow } from '@tunnel/rules/rate';
import type { Clock } from '@tunnel/runtime';

export interface KeyCheckQueueOptions {
  readonly clock: Clock;
  readonly perSecond: number;
  readonly waitingMax: number;
}

export class KeyCheckQueue {
  readonly #clock: Clock;
  readonly #asked: SlidingWindow;
  readonly #turns: FairTurns;
  #isTimed = false;

  constructor({ clock, perSecond, waitingMax }: KeyCheckQueueOptions) {
    this.#clock = clock;
    this.#asked = new SlidingWindow({ perWindow: perSecond, windowMs: 1000 });
    this.#turns = new FairTurns({
      waitingMax,
      standing: () => (this.#asked.hasRoom(clock.monotonic()) ? 'begin' : 'wait'),
    });
  }

  get waiting(): number {
    return this.#turns.waiting;
  }

  /** Waits for the turn of a key check. Returns true at once below the rate limit, and false if too many checks are waiting. */
  turn(): boolean | Promise<boolean> {
    let hasBegun = false;
    let onBegun = (): void => {};
    const begin = (): void => {
      hasBegun = true;
      this.#asked.record(this.#clock.monotonic());
      onBegun();
    };
    if (!this.#turns.enter({ owner: ALL, begin, giveWay: () => {} })) return false;
    if (hasBegun) return true;
    this.#wakeLater();
    return new Promise((resolve) => (onBegun = () => resolve(true)));
  }

  #wakeLater(): void {
    if (this.#isTimed || this.waiting === 0) return;
    this.#isTimed = true;
    const waitMs = this.#asked.retryAfterMs(this.#clock.monotonic());
    this.#clock.setTimeout(
      () => {
        this.#isTimed = false;
        this.#turns.beginNext();
        this.#wakeLater();
      },
      Math.max(1, Math.ceil(waitMs)),
    );
  }
}

/** Owner of every turn. A single owner means a single queue for all clients. */
const ALL = '';
