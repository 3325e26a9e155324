// API keys of an account. The owner creates, lists and revokes keys; an operator can exempt a key from the plan's tunnel limit.
import { randomBytes } from 'node:crypto';
import type { ApiToken, CreatedKey, NewKey } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { sha256Hex } from '@tunnel/runtime';
import { sql, type Transaction } from 'kysely';
import { isUuid, type Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import { type CreationContext, countCreation } from '../shared/creations.ts';
import { announceChange } from '../shared/edge-changes.ts';
import type { OperatorActor, OperatorContext, ServiceContext, UserActor } from '../shared/service-context.ts';
import { API_KEY_RANDOM_BYTES, makeApiKey } from './api-key.rules.ts';

/**
 * Maximum number of active keys per account. GET /keys returns all keys in a single response.
 * @limit accounts: API keys per account | 400 `KEY_LIMIT`
 */
const KEYS_PER_ACCOUNT_MAX = 1000;
/** Number of revoked keys kept per account. Older revoked keys are deleted when another key is revoked. */
const REVOKED_KEYS_KEPT = 100;

type Context = Pick<ServiceContext, 'db'> & CreationContext;

/** Creates an API key. Only the hash is stored, so the response is the only place where the key is visible. */
export const createKey = async (context: Context, { userId }: UserActor, { label }: NewKey): Promise<CreatedKey> => {
  const { db, clock } = context;
  const token = makeApiKey(randomBytes(API_KEY_RANDOM_BYTES));
  const limit = KEYS_PER_ACCOUNT_MAX;
  return db.transaction().execute(async (trx) => {
    // Lock the user, so that concurrent requests count one after the other. Otherwise every request could pass the limit.
    const user = await trx
      .selectFrom('users')
      .select('deleted_at')
      .where('id', '=', userId)
      .forNoKeyUpdate()
      .executeTakeFirst();
    // A request that began before the account's deletion must not create a key afterwards.
    if (user?.deleted_at !== null) throw new Fault('ACCESS_TOKEN_INVALID');
    const { held } = await trx
      .selectFrom('api_keys')
      .select((count) => count.fn.countAll<number>().as('held'))
      .where('user_id', '=', userId)
      .where('status', '=', 'active')
      .executeTakeFirstOrThrow();
    if (held >= limit) throw new Fault('KEY_LIMIT', { limit });
    await countCreation(trx, context, userId);
    const { id } = await trx
      .insertInto('api_keys')
      .values({ user_id: userId, label, token_hash: sha256Hex(token), created_at: new Date(clock.now()) })
      .returning('id')
      .executeTakeFirstOrThrow();
    await writeAudit(trx, { actor: `user:${userId}`, action: 'key.created', userId, details: { key_id: id } });
    return { id, token };
  });
};

/** Lists the active keys of an account, newest first, with the limits of the plan and the number of open tunnels per key. */
export const listKeys = async ({ db }: Pick<ServiceContext, 'db'>, { userId }: UserActor): Promise<ApiToken[]> => {
  const rows = await db
    .selectFrom('api_keys as key')
    .innerJoin('users as user', 'user.id', 'key.user_id')
    .innerJoin('plans as plan', 'plan.name', 'user.plan')
    .leftJoin(openTunnelsByKey(db, userId), 'open.key_id', 'key.id')
    .select([
      'key.id',
      'key.label',
      'key.token_hash',
      'key.created_at',
      'key.last_used_at',
      'key.status',
      'key.unlimited',
      'key.tunnel_count',
      'plan.name as tier',
      'plan.tunnel_limit',
      'open.active_tunnels',
      'open.opened_at',
    ])
    .where('key.user_id', '=', userId)
    .where('key.status', '=', 'active')
    .orderBy('key.created_at', 'desc')
    .orderBy('key.id', 'desc')
    .execute();
  return rows.map(({ opened_at, ...row }) => ({
    ...row,
    created_at: row.created_at.toISOString(),
    last_used_at: laterOf(row.last_used_at, opened_at)?.toISOString() ?? null,
    scope: null,
    active_tunnels: row.active_tunnels ?? 0,
  }));
};

const openTunnelsByKey = (db: ServiceContext['db'], userId: string) =>
  db
    .selectFrom('tunnel_log')
    .select((rows) => [
      'key_id',
      rows.fn.countAll<number>().as('active_tunnels'),
      rows.fn.max<Date>('registered_at').as('opened_at'),
    ])
    .where('user_id', '=', userId)
    .where('unregistered_at', 'is', null)
    .groupBy('key_id')
    .as('open');

const laterOf = (a: Date | null, b: Date | null): Date | null => {
  if (a === null || b === null) return a ?? b;
  return a > b ? a : b;
};

/** Revokes a key: the key is no longer listed or accepted, and every edge is told to close the sessions of the key. */
export const revokeKey = async (
  { db, clock }: Pick<ServiceContext, 'db' | 'clock'>,
  { userId }: UserActor,
  keyId: string,
): Promise<void> => {
  if (!isUuid(keyId)) throw new Fault('KEY_UNKNOWN');
  await db.transaction().execute(async (trx) => {
    const revoked = await trx
      .updateTable('api_keys')
      .set({ status: 'revoked', revoked_at: new Date(clock.now()) })
      .where('id', '=', keyId)
      .where('user_id', '=', userId)
      .where('status', '=', 'active')
      .returning('id')
      .executeTakeFirst();
    if (revoked === undefined) throw new Fault('KEY_UNKNOWN');
    const { id } = revoked;
    await writeAudit(trx, { actor: `user:${userId}`, action: 'key.revoked', userId, details: { key_id: id } });
    await announceChange(trx, { kind: 'key-revoked', keyId: id, accountId: userId });
    await forgetOldestRevoked(trx, userId);
  });
};

/**
 * Deletes the oldest revoked keys above the limit. A client with a deleted key gets the error for an invalid key instead of a revoked
 * key.
 */
const forgetOldestRevoked = async (trx: Transaction<Schema>, userId: string): Promise<void> => {
  await sql`
    delete from api_keys where id in (
      select id from api_keys where user_id = ${userId} and status = 'revoked'
      order by revoked_at desc, id desc offset ${REVOKED_KEYS_KEPT} limit ${LIMITS.CLEAN_UP_ROWS}
    )`.execute(trx);
};

/** Exempts a key from the tunnel limit of its account's plan, or ends the exemption. Returns `changed: false` if nothing changed. */
export const setUnlimited = async (
  { db }: Pick<OperatorContext, 'db'>,
  actor: OperatorActor,
  { keyId, unlimited }: { readonly keyId: string; readonly unlimited: boolean },
): Promise<{ changed: boolean }> => {
  if (!isUuid(keyId)) throw new Fault('KEY_UNKNOWN');
  return db.transaction().execute(async (trx) => {
    const key = await trx
      .selectFrom('api_keys')
      .select(['user_id', 'unlimited'])
      .where('id', '=', keyId)
      .where('status', '=', 'active')
      .forNoKeyUpdate()
      .executeTakeFirst();
    if (key === undefined) throw new Fault('KEY_UNKNOWN');
    if (key.unlimited === unlimited) return { changed: false };
    await trx.updateTable('api_keys').set({ unlimited }).where('id', '=', keyId).execute();
    await writeAudit(trx, {
      actor: actorName(actor),
      action: 'key.unlimited-set',
      userId: key.user_id,
      details: { key_id: keyId, unlimited },
    });
    await announceChange(trx, { kind: 'account-changed', accountId: key.user_id });
    return { changed: true };
  });
};
