// Rows that the requests of the last two seconds asked for, so that not every request asks the database.
import type { Clock } from '@tunnel/runtime';
import { LIMITS } from '../../limits.ts';
import { LruCache } from './lru-cache.ts';

interface Lookup<T> {
  readonly startedAt: number;
  /** null: there is no such row. */
  readonly answer: Promise<T | null>;
  /** undefined: not yet there. */
  settled: T | null | undefined;
}

export interface RecentLookupsOptions<T> {
  readonly clock: Clock;
  readonly max: number;
  readonly read: (id: string) => Promise<T | null>;
}

/** What another process changes (a suspension, a reset) is seen when the two seconds are over, what this one changes at once. */
export class RecentLookups<T> {
  readonly #options: RecentLookupsOptions<T>;
  readonly #lookups: LruCache<Lookup<T>>;

  constructor(options: RecentLookupsOptions<T>) {
    this.#options = options;
    this.#lookups = new LruCache(options.max);
  }

  /** Requests that come together share one query. */
  find(id: string): Promise<T | null> | T | null {
    const now = this.#options.clock.monotonic();
    const lookup = this.#lookups.get(id);
    if (lookup !== undefined && now - lookup.startedAt < LIMITS.KNOWN_USER_MS) {
      return lookup.settled === undefined ? lookup.answer : lookup.settled;
    }
    return this.#look(id, now);
  }

  /** The same without asking the database; undefined: nothing is known. */
  recent(id: string): T | null | undefined {
    const lookup = this.#lookups.get(id);
    const isRecent = lookup !== undefined && this.#options.clock.monotonic() - lookup.startedAt < LIMITS.KNOWN_USER_MS;
    return isRecent ? lookup.settled : undefined;
  }

  /** What the last look-up found, however long ago it was. */
  last(id: string): T | null | undefined {
    return this.#lookups.get(id)?.settled;
  }

  /** It was changed here: the next request asks anew, also while an older question is still under way. */
  forget(id: string): void {
    this.#lookups.delete(id);
  }

  #look(id: string, startedAt: number): Promise<T | null> {
    const answer = this.#options.read(id);
    const lookup: Lookup<T> = { startedAt, answer, settled: undefined };
    this.#lookups.set(id, lookup);
    answer.then(
      (found) => {
        lookup.settled = found;
      },
      // Whoever waits for it is told; the next one asks anew.
      () => this.#lookups.drop(id, lookup),
    );
    return answer;
  }
}
