// The pace at which the platform is asked for keys: after a restart all clients come at once, and none of their keys is known.
// In any second no more than a number of questions; the rest waits its turn, the first come first, as long as its client waits, too.
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

  /** At once where there is room. false: too many wait already. */
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

/** The owner of every turn: all clients wait in a single line. */
const ALL = '';
