// Grants: what programs an account is connected to, how a connection ends, and whether one lives.
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

/** Grants whose end is known without asking the database; for as long as the state of accounts. */
const KNOWN_GRANTS_MAX = 20_000;

/** Which grants live, as it was at most two seconds ago; what this process ends is known at once. */
export class GrantCache {
  readonly #lookups: RecentLookups<{ readonly isRevoked: boolean }>;

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#lookups = new RecentLookups({ clock, max: KNOWN_GRANTS_MAX, read: (id) => readGrant(db, id) });
  }

  /** Of the grant alone: whether its account is in order, and still of its epoch, its token tells. */
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

/** Those with which something can still be done: not revoked, of the account's epoch, and used within the life of a refresh token. */
const livingGrants = (db: Db, now: number) =>
  db
    .selectFrom('oauth_grants as grant')
    .innerJoin('users as user', (join) =>
      join.onRef('user.id', '=', 'grant.user_id').onRef('user.epoch', '=', 'grant.epoch'),
    )
    .where('grant.revoked_at', 'is', null)
    .where('user.status', '=', 'active')
    .where('grant.last_used_at', '>', new Date(now - LIMITS.REFRESH_TOKEN_SECS * 1000));

/** The programs that are connected to the caller's account, the one used last first. One that never came for its token is not. */
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

/** For the metrics: of all accounts. */
export const countGrants = async ({ db, clock }: Pick<ServiceContext, 'db' | 'clock'>): Promise<number> => {
  const { living } = await livingGrants(db, clock.now())
    .select((rows) => rows.fn.countAll<number>().as('living'))
    .executeTakeFirstOrThrow();
  return living;
};

export interface GrantContext extends Pick<ServiceContext, 'db' | 'clock'> {
  readonly grants: Pick<GrantCache, 'forget'>;
}

/** By its owner. Its tokens are refused at once here, and within two seconds by other processes. Throws OAUTH_GRANT_UNKNOWN. */
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
  /** `user:<id>`, or `system`: something of it was found in two hands. */
  readonly actor: string;
  readonly now: number;
  readonly reason?: 'code-reused' | 'token-reused' | 'client';
}

/** All that was given for it ends. false: it had ended before, or there is none. */
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
