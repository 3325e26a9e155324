// Grants: apps connected to an account, the end of a connection, and the check whether a grant is active.
import { type OauthGrant, oauthScope } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import type { Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import { isUuid, type Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import { RecentLookups } from '../shared/recent-lookups.ts';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';

/** Maximum number of grants in the cache. A grant is cached as long as the state of an account. */
const KNOWN_GRANTS_MAX = 20_000;

/** Cache of active grants, at most two seconds old. A grant ended by this process is removed from the cache at once. */
export class GrantCache {
  readonly #lookups: RecentLookups<{ readonly isRevoked: boolean }>;

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#lookups = new RecentLookups({ clock, max: KNOWN_GRANTS_MAX, read: (id) => readGrant(db, id) });
  }

  /**
   * Returns true if the grant was not revoked. Does not check the account: the caller compares the state and the epoch of the account
   * with the token.
   */
  async isAlive(grantId: string): Promise<boolean> {
    return (await this.#lookups.find(grantId))?.isRevoked === false;
  }

  forget(grantId: string): void {
    this.#lookups.forget(grantId);
  }
}

const readGrant = async (db: Db, id: string): Promise<{ readonly isRevoked: boolean } | null> => {
  if (!isUuid(id)) return null;
  const row = await db.selectFrom('oauth_grants').select('revoked_at').where('id', '=', id).executeTakeFirst();
  return row === undefined ? null : { isRevoked: row.revoked_at !== null };
};

/** Query for active grants: not revoked, with the current epoch of the account, and used within the lifetime of a refresh token. */
const livingGrants = (db: Db, now: number) =>
  db
    .selectFrom('oauth_grants as grant')
    .innerJoin('users as user', (join) =>
      join.onRef('user.id', '=', 'grant.user_id').onRef('user.epoch', '=', 'grant.epoch'),
    )
    .where('grant.revoked_at', 'is', null)
    .where('user.status', '=', 'active')
    .where('grant.last_used_at', '>', new Date(now - LIMITS.REFRESH_TOKEN_SECS * 1000));

/** Lists the apps connected to the caller's account, most recently used first. A grant without a redeemed code is left out. */
export const listGrants = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  { userId }: UserActor,
): Promise<OauthGrant[]> => {
  const rows = await livingGrants(db, clock.now())
    .select(['grant.id', 'grant.client_id', 'grant.client_host', 'grant.client_name'])
    .select(['grant.scope', 'grant.created_at', 'grant.last_used_at'])
    .where('grant.user_id', '=', userId)
    .orderBy('grant.last_used_at', 'desc')
    .orderBy('grant.id')
    .execute();
  return rows.map(({ scope, created_at, last_used_at, ...row }) => ({
    ...row,
    scopes: scope.split(' ').map((word) => oauthScope.parse(word)),
    created_at: created_at.toISOString(),
    last_used_at: last_used_at?.toISOString() ?? null,
  }));
};

/** Counts the active grants of all accounts, for metrics. */
export const countGrants = async ({ db, clock }: Pick<ServiceContext, 'db' | 'clock'>): Promise<number> => {
  const { living } = await livingGrants(db, clock.now())
    .select((rows) => rows.fn.countAll<number>().as('living'))
    .executeTakeFirstOrThrow();
  return living;
};

export interface GrantContext extends Pick<ServiceContext, 'db' | 'clock'> {
  readonly grants: Pick<GrantCache, 'forget'>;
}

/**
 * Revokes a grant at the request of its owner. Its tokens are rejected at once by this process, and within two seconds by other
 * processes. Throws OAUTH_GRANT_UNKNOWN.
 */
export const revokeGrant = async (
  { db, clock, grants }: GrantContext,
  actor: UserActor,
  grantId: string,
): Promise<void> => {
  if (!isUuid(grantId)) throw new Fault('OAUTH_GRANT_UNKNOWN');
  await db.transaction().execute(async (trx) => {
    const owned = await trx
      .selectFrom('oauth_grants')
      .select('id')
      .where('id', '=', grantId)
      .where('user_id', '=', actor.userId)
      .executeTakeFirst();
    const ended = owned !== undefined && (await endGrant(trx, { grantId, actor: actorName(actor), now: clock.now() }));
    if (!ended) throw new Fault('OAUTH_GRANT_UNKNOWN');
  });
  grants.forget(grantId);
};

export interface GrantEnd {
  readonly grantId: string;
  /** Actor of the audit entry: `user:<id>`, or `system` if a code or token of the grant was used twice. */
  readonly actor: string;
  readonly now: number;
  readonly reason?: 'code-reused' | 'token-reused' | 'client';
}

/** Ends a grant and thereby everything issued for it. Returns false if the grant had already ended or does not exist. */
export const endGrant = async (
  trx: Transaction<Schema>,
  { grantId, actor, now, reason }: GrantEnd,
): Promise<boolean> => {
  const ended = await trx
    .updateTable('oauth_grants')
    .set({ revoked_at: new Date(now) })
    .where('id', '=', grantId)
    .where('revoked_at', 'is', null)
    .returning(['user_id', 'client_id'])
    .executeTakeFirst();
  if (ended === undefined) return false;
  const details = { grant_id: grantId, client_id: ended.client_id, ...(reason === undefined ? {} : { reason }) };
  await writeAudit(trx, { actor, action: 'oauth.revoked', userId: ended.user_id, details });
  return true;
};
