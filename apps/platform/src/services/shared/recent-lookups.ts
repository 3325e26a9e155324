// Rows that the requests of the last two seconds asked for, so that not every request asks the database.
import { Cache, type Clock } from '@tunnel/runtime';

/** For so long: a suspension is in force within it. */
export const KNOWN_USER_MS = 2000;

interface Lookup<T> {
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
  readonly #lookups: Cache<string, Lookup<T>>;

  constructor(options: RecentLookupsOptions<T>) {
    this.#options = options;
    const { max, clock } = options;
    this.#lookups = new Cache({ max, clock, ttlMs: KNOWN_USER_MS, keepsExpired: true });
  }

  /** Requests that come together share one query. */
  find(id: string): Promise<T | null> | T | null {
    const lookup = this.#lookups.get(id);
    if (lookup === undefined) return this.#look(id);
    return lookup.settled === undefined ? lookup.answer : lookup.settled;
  }

  /** The same without asking the database; undefined: nothing is known. */
  recent(id: string): T | null | undefined {
    return this.#lookups.get(id)?.settled;
  }

  /** What the last look-up found, however long ago it was. */
  last(id: string): T | null | undefined {
    return this.#lookups.last(id)?.settled;
  }

  /** It was changed here: the next request asks anew, also while an older question is still under way. */
  forget(id: string): void {
    this.#lookups.delete(id);
  }

  #look(id: string): Promise<T | null> {
    const answer = this.#options.read(id);
    const lookup: Lookup<T> = { answer, settled: undefined };
    this.#lookups.set(id, lookup);
    answer.then(
      (found) => {
        lookup.settled = found;
      },
      // Whoever waits for it is told; the next one asks anew.
      () => this.#lookups.deleteValue(id, lookup),
    );
    return answer;
  }
}
