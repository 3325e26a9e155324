// Limits the released names of an account. A released name stays blocked for other accounts for a while, so without a limit, a script
// could block all names by repeatedly taking and releasing names.
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import type { NameKey } from '../shared/edge-changes.ts';
import { isHeldByUse } from './name-rows.ts';

/**
 * Maximum number of released subdomains of an account that stay blocked for other accounts. Above the limit, the names released first
 * become free at once.
 */
export const RELEASED_NAMES_PER_ACCOUNT_MAX = 1000;
/**
 * Maximum number of released ports of an account that stay blocked for other accounts. Lower than for subdomains, because ports are
 * scarce.
 */
export const RELEASED_PORTS_PER_ACCOUNT_MAX = 100;

/**
 * Frees the account's released names above the limit, in the order of their release. A name that is locked or served by a tunnel is
 * skipped until the next call.
 */
export const capReleasedNames = async (
  trx: Transaction<Schema>,
  userId: string,
  kind: NameKey['kind'],
): Promise<void> => {
  const isPort = !isHeldByUse(kind);
  const most = isPort ? RELEASED_PORTS_PER_ACCOUNT_MAX : RELEASED_NAMES_PER_ACCOUNT_MAX;
  const { rows } = await sql<{ id: string }>`
    select id from names
    where id in (
      select id from names
      where user_id = ${userId} and state = 'released' and (kind not in ('subdomain', 'p2p')) = ${isPort} and (
        -- Without a time: it was served when it was released. That may be over.
        released_at is not null
        or not exists (select from tunnel_log where name_id = names.id and unregistered_at is null)
      )
      order by coalesce(released_at, last_used_at, created_at) desc, id offset ${most} limit ${LIMITS.NAMES_ROWS}
    ) and state = 'released'
    for update skip locked
  `.execute(trx);
  if (rows.length === 0) return;
  // A second statement checks again for open tunnels, because the first does not see a tunnel opened between its check and its lock.
  await sql`
    delete from names where id = any(${rows.map(({ id }) => id)}::uuid[])
      and not exists (select from tunnel_log where name_id = names.id and unregistered_at is null)
  `.execute(trx);
};
