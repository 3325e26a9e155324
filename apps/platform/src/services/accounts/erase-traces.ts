// What of a deleted account is erased, table by table; docs/security.md has the list of what stays. Each statement is its own
// transaction and may be done any number of times: a request that began before the deletion may write behind it.
import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { LIMITS } from '../../limits.ts';
import { removeAllDomainsOf } from '../domains/edge-domains.ts';
import { releaseAllNames } from '../names/reservations.ts';

/** Rows of the log are locked in the order of tunnel ids and keys in that of ids, as everywhere: nobody waits in a circle. */
export const eraseTraces = async (db: Db, userId: string, now: number): Promise<void> => {
  const statements: readonly RawBuilder<unknown>[] = [
    // Addresses, networks and programs of log-ins; their tokens go along.
    sql`delete from refresh_families where user_id = ${userId}`,
    // What programs were allowed; their codes and tokens go along.
    sql`delete from oauth_grants where user_id = ${userId}`,
    sql`delete from mail_tokens where user_id = ${userId}`,
    sql`delete from mail_requests where user_id = ${userId}`,
    sql`delete from mail_outbox where user_id = ${userId}`,
    sql`delete from idempotency_keys where user_id = ${userId}`,
    sql`delete from cap_notices where user_id = ${userId}`,
    // Nobody is written to about money any more, and the card is nobody's.
    sql`
      update billing_accounts set spend_cap_cents = null, card_brand = null, card_last4 = null
      where user_id = ${userId} and (spend_cap_cents is not null or card_brand is not null)`,
    // A key without its label tells whoever still uses it that it was revoked.
    sql`
      with own as (
        select id from api_keys
        where user_id = ${userId} and (status = 'active' or label <> '')
        order by id for no key update
      )
      update api_keys set status = 'revoked', label = '', revoked_at = coalesce(revoked_at, ${new Date(now)})
      from own where api_keys.id = own.id`,
    // The open ones are needed until their edge has told what they carried.
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
  // For the usual time nobody else gets what visitors know as this account's; then the rows go.
  await db.transaction().execute((trx) => releaseAllNames(trx, userId, now));
  // Whoever holds the domain may prove it for another account at once.
  await removeAllDomainsOf(db, userId, now);
  await eraseLog(db, userId, { open: false });
};

/** Some of them: an account may have millions. Whether that was all. */
export const eraseLog = async (db: Db, userId: string, { open }: { readonly open: boolean }): Promise<boolean> => {
  const which = open ? sql`unregistered_at is null` : sql`unregistered_at is not null`;
  const { numAffectedRows } = await sql`
    delete from tunnel_log where id in (
      select id from tunnel_log where user_id = ${userId} and ${which}
      order by tunnel_id limit ${LIMITS.CLEAN_UP_ROWS} for update
    )`.execute(db);
  return Number(numAffectedRows ?? 0) < LIMITS.CLEAN_UP_ROWS;
};
