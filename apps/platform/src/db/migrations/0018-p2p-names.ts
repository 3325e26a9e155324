// p2p names that keys of every account can connect to belong to an account, one per region, as subdomains do.
import { type Kysely, sql } from 'kysely';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`alter table names drop constraint names_kind_check`.execute(db);
  await sql`alter table names add constraint names_kind_check check (kind in ('subdomain', 'tcp', 'udp', 'p2p'))`.execute(
    db,
  );
};
