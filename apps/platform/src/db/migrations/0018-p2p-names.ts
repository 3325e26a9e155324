// Adds the kind `p2p` to names. A p2p name open to the keys of every account belongs to one account in a region, just as a subdomain
// belongs to one account.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['names'];

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`alter table names drop constraint names_kind_check`.execute(db);
  await sql`alter table names add constraint names_kind_check check (kind in ('subdomain', 'tcp', 'udp', 'p2p'))`.execute(
    db,
  );
};
