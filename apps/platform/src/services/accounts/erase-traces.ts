// Erases the data of a deleted account, table by table. docs/security.md lists the data that stays. Each statement is a separate
// transaction and can be repeated, because a request that began before the deletion may write afterwards.
import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { LIMITS } from '../../limits.ts';
import { removeAllDomainsOf } from '../domains/edge-domains.ts';
import { releaseAllNames } from '../names/reservations.ts';

/**
 * Erases the data of a deleted account, except log entries with open tunnels. Log rows are locked in the order of tunnel ids and keys in
 * the order of ids, as everywhere else, to avoid deadlocks.
 */
export const eraseTraces = async (db: Db, userId: string, now: number): Promise<void> => {
  const statements: readonly RawBuilder<unknown>[] = [
    // Sessions with addresses, networks and user agents of sign-ins. Their refresh tokens are deleted by cascade.
    sql`delete from refresh_families where user_id = ${userId}`,
    // Grants of OAuth clients. Their codes and tokens are deleted by cascade.
    sql`delete from oauth_grants where user_id = ${userId}`,
    sql`delete from mail_tokens where user_id = ${userId}`,
    sql`delete from mail_requests where user_id = ${userId}`,
    sql`delete from mail_outbox where user_id = ${userId}`,
    sql`delete from idempotency_keys where user_id = ${userId}`,
    sql`delete from cap_notices where user_id = ${userId}`,
    // Without a spend cap, no mail about spending is sent. The card details are erased as personal data.
    sql`
      update billing_accounts set spend_cap_cents = null, card_brand = null, card_last4 = null
      where user_id = ${userId} and (spend_cap_cents is not null or card_brand is not null)`,
    // Keys are kept as revoked rows without a label, so that a client with an old key learns that the key was revoked.
    sql`
      with own as (
        select id from api_keys
        where user_id = ${userId} and (status = 'active' or label <> '')
        order by id for no key update
      )
      update api_keys set status = 'revoked', label = '', revoked_at = coalesce(revoked_at, ${new Date(now)})
      from own where api_keys.id = own.id`,
    // Entries of open tunnels are kept, without personal data, until the edge has reported their usage.
    sql`
      with own as (
        select id from tunnel_log
        where user_id = ${userId} and unregistered_at is null
        order by tunnel_id for no key update
      )
      update tunnel_log set name = '', label = '', endpoint = null, public_url = null, client_name = null
      from own where tunnel_log.id = own.id`,
  ];
  for (const statement of statements) await statement.execute(db);
  // Released names are kept from other accounts for the usual time, because visitors know the names as this account's. Then the rows are
  // deleted.
  await db.transaction().execute((trx) => releaseAllNames(trx, userId, now));
  // Removed domains are free at once: the owner of a domain can verify it for another account.
  await removeAllDomainsOf(db, userId, now);
  await eraseLog(db, userId, { open: false });
};

/** Erases a batch of the account's log entries, because an account can have millions. Returns true if no entries are left. */
export const eraseLog = async (db: Db, userId: string, { open }: { readonly open: boolean }): Promise<boolean> => {
  const which = open ? sql`unregistered_at is null` : sql`unregistered_at is not null`;
  const { numAffectedRows } = await sql`
    delete from tunnel_log where id in (
      select id from tunnel_log where user_id = ${userId} and ${which}
      order by tunnel_id limit ${LIMITS.CLEAN_UP_ROWS} for update
    )`.execute(db);
  return Number(numAffectedRows ?? 0) < LIMITS.CLEAN_UP_ROWS;
};
