// Cache of database rows for two seconds, so that not every request queries the database.
import { Cache, type Clock } from '@tunnel/runtime';

/** Lifetime of a cached row. A suspension takes effect within this time. */
export const KNOWN_USER_MS = 2000;

interface Lookup<T> {
  /** Result of the query; null if the row does not exist. */
  readonly answer: Promise<T | null>;
  /** Result of the finished query; undefined while the query is running. */
  settled: T | null | undefined;
}

export interface RecentLookupsOptions<T> {
  readonly clock: Clock;
  readonly max: number;
  readonly read: (id: string) => Promise<T | null>;
}

/**
 * Caches lookups by id for two seconds. A change by another process (such as a suspension or a password reset) is visible when the two
 * seconds have passed; a change by this process, immediately.
 */
export class RecentLookups<T> {
  readonly #options: RecentLookupsOptions<T>;
  readonly #lookups: Cache<string, Lookup<T>>;

  constructor(options: RecentLookupsOptions<T>) {
    this.#options = options;
    const { max, clock } = options;
    this.#lookups = new Cache({ max, clock, ttlMs: KNOWN_USER_MS, keepsExpired: true });
  }

  /** Finds a row. Concurrent requests for the same id share a query. */
  find(id: string): Promise<T | null> | T | null {
    const lookup = this.#lookups.get(id);
    if (lookup === undefined) return this.#look(id);
    return lookup.settled === undefined ? lookup.answer : lookup.settled;
  }

  /** Returns the cached result without a database query. Returns undefined if no result is cached. */
  recent(id: string): T | null | undefined {
    return this.#lookups.get(id)?.settled;
  }

  /** Returns the result of the last lookup of a row, regardless of the lookup's age. */
  last(id: string): T | null | undefined {
    return this.#lookups.last(id)?.settled;
  }

  /**
   * Removes a row from the cache after a change by this process. The next request starts a new query, even if an older query is still
   * running.
   */
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
      // A failed query is reported to its waiting callers and not cached; the next request queries again.
      () => this.#lookups.deleteValue(id, lookup),
    );
    return answer;
  }
}
