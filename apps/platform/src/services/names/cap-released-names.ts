// What an account has given back keeps others away for a while: so there is a bound, else a script that takes a name and leaves it, again
// and again, would take them all.
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import type { NameKey } from '../shared/edge-changes.ts';
import { isHeldByUse } from './name-rows.ts';

/** Released subdomains of an account that others cannot have because of it; of more, those released first are free at once. */
export const RELEASED_NAMES_PER_ACCOUNT_MAX = 1000;
/** The same for ports, which are scarce. */
export const RELEASED_PORTS_PER_ACCOUNT_MAX = 100;

/** Those that were released first go, at once. One that is locked, or that a tunnel serves, is left to the next time. */
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
  // Looked at once more: a tunnel that was opened between the look and the lock is only seen by a second statement.
  await sql`
    delete from names where id = any(${rows.map(({ id }) => id)}::uuid[])
      and not exists (select from tunnel_log where name_id = names.id and unregistered_at is null)
  `.execute(trx);
};
