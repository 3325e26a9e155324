// The pace at which the platform is asked for keys: after a restart all clients come at once, and none of their keys is known.
// In any second no more than a number of questions; the rest waits its turn, the first come first, as long as its client waits, too.
import type { Clock } from '@tunnel/runtime';

export interface KeyCheckQueueOptions {
  readonly clock: Clock;
  readonly perSecond: number;
  readonly waitingMax: number;
}

const SECOND_MS = 1000;

export class KeyCheckQueue {
  readonly #options: KeyCheckQueueOptions;
  /** When the last `perSecond` questions were let through, as a ring; the next one takes the place of the oldest. */
  readonly #times: number[];
  #oldest = 0;
  readonly #waiting = new Set<() => void>();
  #isTimed = false;

  constructor(options: KeyCheckQueueOptions) {
    this.#options = options;
    this.#times = Array.from({ length: options.perSecond }, () => Number.NEGATIVE_INFINITY);
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** At once where there is room. false: too many wait already. */
  turn(): boolean | Promise<boolean> {
    if (this.#waiting.size === 0 && this.#enter()) return true;
    if (this.#waiting.size >= this.#options.waitingMax) return false;
    return new Promise((resolve) => {
      this.#waiting.add(() => resolve(true));
      this.#wakeLater();
    });
  }

  #enter(): boolean {
    const now = this.#options.clock.monotonic();
    if (this.#freeAt() > now) return false;
    this.#times[this.#oldest] = now;
    this.#oldest = (this.#oldest + 1) % this.#times.length;
    return true;
  }

  #freeAt(): number {
    return (this.#times[this.#oldest] as number) + SECOND_MS;
  }

  #wakeLater(): void {
    if (this.#isTimed || this.#waiting.size === 0) return;
    this.#isTimed = true;
    const { clock } = this.#options;
    clock.setTimeout(
      () => {
        this.#isTimed = false;
        for (const go of this.#waiting) {
          if (!this.#enter()) break;
          this.#waiting.delete(go);
          go();
        }
        this.#wakeLater();
      },
      Math.max(1, Math.ceil(this.#freeAt() - clock.monotonic())),
    );
  }
}
