// Creates automatically ordered certificates, with their life cycle, lock and issued chain; and the accounts, challenges and order
// budgets at certificate authorities. Rows belong to an authority's directory URL, because authorities share no state.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table certificates (
      id uuid primary key default gen_random_uuid(),
      directory text not null,
      -- Separated by spaces, sorted.
      names text not null,
      has_wildcard boolean not null,
      -- null: the operator's own. No reference: it is forgotten, and edges are told, when nobody wants it any more.
      user_id uuid,
      life jsonb not null,
      due_at timestamptz not null,
      -- Kept and shown, not renewed: the proof of its domain is gone.
      suspended boolean not null default false,
      order_key text,
      certificate jsonb,
      locked_by text,
      locked_until timestamptz,
      epoch bigint not null default 0,
      created_at timestamptz not null default now()
    )`.execute(db);
  await sql`create unique index certificates_by_names on certificates (directory, names)`.execute(db);
  await sql`create index certificates_due on certificates (directory, due_at) where not suspended`.execute(db);
  // Finds the certificates of a name from all authorities.
  await sql`create index certificates_of_name on certificates (names)`.execute(db);

  await sql`
    create table acme_accounts (
      directory text primary key,
      -- A JWK, sealed.
      key text not null,
      url text,
      email text not null
    )`.execute(db);
  await sql`
    create table acme_challenges (
      directory text not null,
      -- What an edge asks by: 'token TOKEN' or 'tls NAME'.
      asked_by text not null,
      type text not null,
      name text not null,
      token text not null,
      key_authorization text not null,
      expires_at timestamptz not null,
      primary key (directory, asked_by)
    )`.execute(db);
  await sql`create index acme_challenges_by_end on acme_challenges (expires_at)`.execute(db);
  await sql`
    create table acme_budgets (
      directory text not null,
      name text not null,
      -- In ms since the epoch, oldest first.
      taken_at jsonb not null default '[]',
      primary key (directory, name)
    )`.execute(db);
  // Directory URL of the authority in use, set by the platform that started last.
  await sql`
    create table acme_authority (
      only_one boolean primary key default true check (only_one),
      directory text not null
    )`.execute(db);

  await sql`alter table edge_changes add column certificate_id uuid`.execute(db);
};
