// How often somebody may ask for a challenge: each is a question for the database, and whoever shakes hands or sends a request can cause one.
import { AccountBuckets } from '@tunnel/rules/rate';
import type { Clock } from '@tunnel/runtime';
import { LIMITS } from '../../limits.ts';

export class ChallengePace {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #buckets = new AccountBuckets({ perSecond: LIMITS.CHALLENGES_PER_SECOND, burst: LIMITS.CHALLENGES_BURST });

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** 0: it is counted, and may ask. Else how long it has to wait. */
  waitMs(caller: string): number {
    const now = this.#clock.monotonic();
    const waitMs = this.#buckets.waitMs(caller, now);
    if (waitMs > 0) return waitMs;
    if (this.#buckets.size >= LIMITS.LINK_EDGES_MAX) this.#buckets.dropFull(now);
    this.#buckets.charge(caller, 1, now);
    return 0;
  }
}
