// Creates plans, users, sessions, tokens sent by mail, and the outbox of waiting mails.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table plans (
      name text primary key,
      tunnel_limit integer,
      allow_custom_subdomains boolean not null,
      monthly_minimum_cents integer not null,
      price_cents_per_gb integer not null
    )`.execute(db);

  await sql`
    create table users (
      id uuid primary key default gen_random_uuid(),
      -- Trimmed and in lower case: one address is one account.
      email text not null unique,
      display_name text,
      -- null: an account of an external sign-in.
      password_hash text,
      email_verified_at timestamptz,
      status text not null default 'active' check (status in ('active', 'suspended')),
      auth_method text not null default 'password',
      plan text not null references plans (name),
      -- Carried in access tokens: raising it ends all of them.
      epoch integer not null default 0,
      created_at timestamptz not null default now()
    )`.execute(db);

  await sql`
    create table refresh_families (
      id uuid primary key default gen_random_uuid(),
      user_id uuid not null references users (id) on delete cascade,
      user_agent text not null default '',
      address text not null default '',
      created_at timestamptz not null default now(),
      last_used_at timestamptz not null default now(),
      revoked_at timestamptz
    )`.execute(db);
  await sql`create index refresh_families_of_user on refresh_families (user_id) where revoked_at is null`.execute(db);

  await sql`
    create table refresh_tokens (
      token_hash text primary key,
      family_id uuid not null references refresh_families (id) on delete cascade,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      -- When its first successor was given out.
      rotated_at timestamptz,
      -- Successors given out after the first, to tabs that came with it a moment later.
      grace_uses integer not null default 0
    )`.execute(db);
  await sql`create index refresh_tokens_of_family on refresh_tokens (family_id)`.execute(db);
  await sql`create index refresh_tokens_by_expiry on refresh_tokens (expires_at)`.execute(db);

  await sql`
    create table mail_tokens (
      token_hash text primary key,
      user_id uuid not null references users (id) on delete cascade,
      kind text not null check (kind in ('verify', 'reset')),
      created_at timestamptz not null default now(),
      expires_at timestamptz not null,
      used_at timestamptz
    )`.execute(db);
  await sql`create index mail_tokens_of_user on mail_tokens (user_id, kind)`.execute(db);
  await sql`create index mail_tokens_by_expiry on mail_tokens (expires_at)`.execute(db);

  await sql`
    create table mail_outbox (
      id uuid primary key default gen_random_uuid(),
      recipient text not null,
      subject text not null,
      text_body text not null,
      html_body text not null,
      created_at timestamptz not null default now(),
      next_try_at timestamptz not null default now(),
      attempts integer not null default 0,
      sent_at timestamptz,
      given_up_at timestamptz
    )`.execute(db);
  await sql`
    create index mail_outbox_waiting on mail_outbox (next_try_at) where sent_at is null and given_up_at is null
  `.execute(db);
};
