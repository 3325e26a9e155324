// Adds own domains: host names proven by accounts through DNS, the plan's limit of domains, and announced changes of domains.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table own_domains (
      id uuid primary key default gen_random_uuid(),
      user_id uuid not null references users (id) on delete cascade,
      -- As A-labels, with its *. if it is a wildcard.
      name text not null,
      wildcard boolean not null,
      -- The account's for this name; no other account has it.
      token text not null,
      wants_certificate boolean not null default true,
      state text not null check (state in ('pending', 'verified', 'failed', 'lapsed')),
      -- Its looks are counted from here.
      since timestamptz not null,
      verified_at timestamptz,
      checked_at timestamptz,
      -- Of a verified one: the first of the looks in a row without its proof.
      absent_since timestamptz,
      -- null: nobody looks by itself.
      next_look_at timestamptz,
      last_error text,
      -- When its owner was last written to, by the kind of the mail.
      mailed_at jsonb not null default '{}',
      -- Which of its records the last look saw; null: nobody has looked yet.
      found jsonb,
      created_at timestamptz not null default now()
    )`.execute(db);
  await sql`create unique index own_domains_of_user on own_domains (user_id, name)`.execute(db);
  await sql`create index own_domains_by_name on own_domains (name, created_at)`.execute(db);
  // Only one account at a time can have a verified domain. Edges read the snapshot of domains in the order of this index.
  await sql`create unique index own_domains_verified on own_domains (name) where state = 'verified'`.execute(db);
  await sql`create index own_domains_due on own_domains (next_look_at) where next_look_at is not null`.execute(db);

  await sql`alter table plans add column domain_limit integer`.execute(db);
  await sql`alter table edge_changes add column domain text, add column keeps_tunnels boolean`.execute(db);
};
