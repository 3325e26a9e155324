// The users behind the requests of the last two seconds, so that not every request asks the database. What another process
// changes (a suspension, a reset) is seen when the two seconds are over, what this one changes at once.
import type { UserPublic } from '@tunnel/contract';
import type { Clock } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';
import { isUuid } from '../is-uuid.ts';
import { BoundedCache } from './bounded-cache.ts';
import { presentUser, SHOWN_USER_COLUMNS } from './present-user.ts';

export interface KnownUser {
  readonly user: UserPublic;
  readonly epoch: number;
}

interface Lookup {
  readonly startedAt: number;
  /** null: there is no such user. */
  readonly answer: Promise<KnownUser | null>;
  /** undefined: not yet there. */
  settled: KnownUser | null | undefined;
}

export class KnownUsers {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #lookups = new BoundedCache<Lookup>(PLATFORM_BOUNDS.KNOWN_USERS_MAX);

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Requests that come together share one query. */
  find(userId: string): Promise<KnownUser | null> | KnownUser | null {
    const now = this.#clock.monotonic();
    const lookup = this.#lookups.get(userId);
    if (lookup !== undefined && now - lookup.startedAt < PLATFORM_BOUNDS.KNOWN_USER_MS) {
      return lookup.settled === undefined ? lookup.answer : lookup.settled;
    }
    return this.#look(userId, now);
  }

  /** It was changed here: the next request asks anew, also while an older question is still under way. */
  forget(userId: string): void {
    this.#lookups.delete(userId);
  }

  #look(userId: string, startedAt: number): Promise<KnownUser | null> {
    const answer = this.#read(userId);
    const lookup: Lookup = { startedAt, answer, settled: undefined };
    this.#lookups.set(userId, lookup);
    answer.then(
      (user) => {
        lookup.settled = user;
      },
      // Whoever waits for it is told; the next one asks anew.
      () => this.#lookups.drop(userId, lookup),
    );
    return answer;
  }

  async #read(userId: string): Promise<KnownUser | null> {
    if (!isUuid(userId)) return null;
    const row = await this.#db
      .selectFrom('users')
      .select([...SHOWN_USER_COLUMNS, 'epoch'])
      .where('id', '=', userId)
      .executeTakeFirst();
    return row === undefined ? null : { user: presentUser(row), epoch: row.epoch };
  }
}
