// Creates API keys, edges and their journals, the tunnel log with daily sums, the changes announced to edges, and the audit log.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table api_keys (
      id uuid primary key default gen_random_uuid(),
      user_id uuid not null references users (id) on delete cascade,
      label text not null,
      -- SHA-256 in hex; the key itself is never stored.
      token_hash text not null unique,
      created_at timestamptz not null default now(),
      last_used_at timestamptz,
      status text not null default 'active' check (status in ('active', 'revoked')),
      revoked_at timestamptz,
      unlimited boolean not null default false,
      -- Tunnels ever registered with it.
      tunnel_count bigint not null default 0
    )`.execute(db);
  await sql`create index api_keys_of_user on api_keys (user_id, created_at) where status = 'active'`.execute(db);

  await sql`
    create table edges (
      id uuid primary key default gen_random_uuid(),
      name text not null,
      credential_hash text not null unique,
      created_at timestamptz not null default now(),
      revoked_at timestamptz,
      -- From its heartbeats; null before the first.
      region_id text,
      region_name text not null default '',
      location text not null default '',
      api_url text not null default '',
      -- How the platform shows itself to this run of the edge.
      api_secret text not null default '',
      version text not null default '',
      run_id text,
      last_heartbeat_at timestamptz
    )`.execute(db);
  await sql`create unique index edges_by_name on edges (name) where revoked_at is null`.execute(db);

  await sql`
    create table edge_journals (
      edge_id uuid not null references edges (id) on delete cascade,
      journal_id text not null,
      -- Records up to this one are stored; a batch that was sent twice is stored once.
      last_record bigint not null default 0,
      updated_at timestamptz not null default now(),
      primary key (edge_id, journal_id)
    )`.execute(db);

  await sql`
    create table tunnel_log (
      id uuid primary key default gen_random_uuid(),
      user_id uuid not null references users (id) on delete cascade,
      key_id uuid,
      edge_id uuid references edges (id) on delete set null,
      run_id text not null default '',
      region_id text,
      tunnel_id text not null unique,
      session_id text not null default '',
      name text not null default '',
      protocol text not null,
      -- Empty until the edge has found it a place.
      label text not null default '',
      registered_at timestamptz not null,
      unregistered_at timestamptz,
      -- Nobody saw it end: its edge fell silent, or began a new run. The edge's own word counts more, when it comes.
      presumed_closed boolean not null default false,
      request_count bigint not null default 0,
      bytes_proxied bigint not null default 0
    )`.execute(db);
  await sql`create index tunnel_log_of_user on tunnel_log (user_id, registered_at desc, id desc)`.execute(db);
  await sql`create index tunnel_log_open_of_user on tunnel_log (user_id) where unregistered_at is null`.execute(db);
  await sql`create index tunnel_log_open_of_edge on tunnel_log (edge_id, run_id) where unregistered_at is null`.execute(
    db,
  );
  await sql`create index tunnel_log_presumed_closed on tunnel_log (edge_id, run_id) where presumed_closed`.execute(db);

  await sql`
    create table usage_daily (
      user_id uuid not null references users (id) on delete cascade,
      -- In UTC.
      day date not null,
      tunnels bigint not null default 0,
      requests bigint not null default 0,
      bytes bigint not null default 0,
      primary key (user_id, day)
    )`.execute(db);

  await sql`
    create table edge_changes (
      id bigint generated always as identity primary key,
      at timestamptz not null default now(),
      kind text not null,
      account_id uuid,
      key_id uuid,
      -- What the client is told, for those that end sessions.
      code text,
      message text
    )`.execute(db);
  await sql`create index edge_changes_by_time on edge_changes (at)`.execute(db);

  await sql`
    create table audit_log (
      id bigint generated always as identity primary key,
      at timestamptz not null default now(),
      actor text not null,
      action text not null,
      user_id uuid,
      details jsonb not null default '{}'
    )`.execute(db);
  await sql`create index audit_log_of_user on audit_log (user_id, id)`.execute(db);
  await sql`
    create function refuse_change() returns trigger language plpgsql as
    $$ begin raise exception 'the audit log is only ever added to'; end $$
  `.execute(db);
  await sql`
    create trigger audit_log_append_only before update or delete or truncate on audit_log
    for each statement execute function refuse_change()
  `.execute(db);
};
