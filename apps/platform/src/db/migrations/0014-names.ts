// Adds names and ports owned by accounts, the plan's limit for reserved names, the port ranges of edges, and announced changes of names.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['tunnel_log'];

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table names (
      id uuid primary key default gen_random_uuid(),
      kind text not null check (kind in ('subdomain', 'tcp', 'udp')),
      -- Of a port; empty for subdomains, which are one account's in all regions. Not null, so that the index below holds for them.
      region_id text not null default '',
      label text not null,
      user_id uuid not null references users (id) on delete cascade,
      state text not null check (state in ('held', 'reserved', 'released')),
      -- Of the last group that its owner opened here.
      group_key_hash text,
      created_at timestamptz not null default now(),
      -- When its last tunnel ended; null: none has yet.
      last_used_at timestamptz,
      -- null: it is not released, or its time runs from the end of its last tunnel.
      released_at timestamptz
    )`.execute(db);
  await sql`create unique index names_by_label on names (kind, region_id, label)`.execute(db);
  await sql`create index names_of_user on names (user_id, state, created_at)`.execute(db);
  // Edges read the snapshot of reserved names in the order of this index.
  await sql`create index names_reserved on names (kind, region_id, label) where state = 'reserved'`.execute(db);
  await sql`create index names_held_by_use on names (last_used_at) where state = 'held'`.execute(db);
  await sql`create index names_released on names (released_at) where state = 'released'`.execute(db);
  await sql`create index names_wildcard on names (label) where label like '*.%'`.execute(db);

  // Name served by the tunnel. Not a foreign key: the id may outlive the name, and another account that gets the same label later has a
  // new id.
  await sql`alter table tunnel_log add column name_id uuid`.execute(db);
  await sql`
    create index tunnel_log_open_of_name on tunnel_log (name_id) where unregistered_at is null and name_id is not null
  `.execute(db);
  // Index of open tunnels with a label. Queries repeat the same conditions, so that PostgreSQL can use this partial index.
  await sql`
    create index tunnel_log_open_by_label on tunnel_log (label) where unregistered_at is null and label <> ''
  `.execute(db);

  await sql`alter table plans add column reserved_limit integer`.execute(db);
  // First and last port of a range, both inclusive. Null for an old edge that does not report its ports.
  await sql`
    alter table edges add column tcp_from integer, add column tcp_to integer, add column udp_from integer, add column udp_to integer
  `.execute(db);
  await sql`
    alter table edge_changes add column name_kind text, add column name_region text, add column name_label text
  `.execute(db);
};
