// Users: their form in the API, changes of the own account, and a cache for the requests of two seconds.
import type { UserChange, UserPublic } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import type { Selectable } from 'kysely';
import type { Db } from '../../db/database.ts';
import { isUuid, type UsersTable } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import { RecentLookups } from '../shared/recent-lookups.ts';
import type { UserActor } from '../shared/service-context.ts';

export const SHOWN_USER_COLUMNS = [
  'id',
  'email',
  'display_name',
  'email_verified_at',
  'status',
  'auth_method',
  'created_at',
] as const;

export type ShownUserRow = Pick<Selectable<UsersTable>, (typeof SHOWN_USER_COLUMNS)[number]>;

/** Converts a row to a user of the API. */
export const presentUser = (row: ShownUserRow): UserPublic => ({
  id: row.id,
  email: row.email,
  display_name: row.display_name,
  email_verified: row.email_verified_at !== null,
  status: row.status,
  auth_method: row.auth_method,
  created_at: row.created_at.toISOString(),
});

/** Returns the caller's user. */
export const showMe = async ({ users }: { readonly users: UserCache }, { userId }: UserActor): Promise<UserPublic> => {
  const known = await users.find(userId);
  // The account was deleted after the check of the access token.
  if (known === null) throw new Fault('ACCESS_TOKEN_INVALID');
  return known.user;
};

/** Updates the caller's account. Only the display name can be changed. */
export const updateMe = async (
  { db, users }: { readonly db: Db; readonly users: UserCache },
  { userId }: UserActor,
  { display_name }: UserChange,
): Promise<UserPublic> => {
  const row = await db
    .updateTable('users')
    .set({ display_name })
    .where('id', '=', userId)
    .where('deleted_at', 'is', null)
    .returning([...SHOWN_USER_COLUMNS])
    .executeTakeFirst();
  users.forget(userId);
  if (row === undefined) throw new Fault('ACCESS_TOKEN_INVALID');
  return presentUser(row);
};

export interface CachedUser {
  readonly user: UserPublic;
  readonly epoch: number;
}

/** Cache of users for two seconds, so that not every request queries the database. */
export class UserCache {
  readonly #db: Db;
  readonly #lookups: RecentLookups<CachedUser>;

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#db = db;
    this.#lookups = new RecentLookups({ clock, max: LIMITS.KNOWN_USERS_MAX, read: (userId) => this.#read(userId) });
  }

  /** Finds a user. Returns null if the user does not exist. */
  find(userId: string): Promise<CachedUser | null> | CachedUser | null {
    return this.#lookups.find(userId);
  }

  /** Removes a user from the cache after a change by this process. */
  forget(userId: string): void {
    this.#lookups.forget(userId);
  }

  async #read(userId: string): Promise<CachedUser | null> {
    if (!isUuid(userId)) return null;
    const row = await this.#db
      .selectFrom('users')
      .select([...SHOWN_USER_COLUMNS, 'epoch'])
      .where('id', '=', userId)
      .where('deleted_at', 'is', null)
      .executeTakeFirst();
    return row === undefined ? null : { user: presentUser(row), epoch: row.epoch };
  }
}
