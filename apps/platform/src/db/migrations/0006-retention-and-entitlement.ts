// Adds indexes for deleting old rows, mail requests by strangers with a quota per recipient, the networks of sign-ins, and columns for
// closing accounts that are past due or over their plan.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['audit_log', 'billing_accounts', 'cap_notices', 'refresh_families', 'tunnel_log', 'users'];

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await retention(db);
  await mails(db);
  await logins(db);
  await closing(db);
};

const retention = async (db: Kysely<unknown>): Promise<void> => {
  await sql`create index tunnel_log_by_end on tunnel_log (unregistered_at) where unregistered_at is not null`.execute(
    db,
  );
  await sql`create index audit_log_by_time on audit_log (at)`.execute(db);
  await sql`create index users_unverified on users (created_at) where email_verified_at is null`.execute(db);
  await sql`create index cap_notices_by_time on cap_notices (at)`.execute(db);
  // The audit log stays append-only, except for the cleanup, which identifies itself with a setting in its transaction.
  await sql`
    create or replace function refuse_change() returns trigger language plpgsql as
    $$ begin
      if tg_op = 'DELETE' and current_setting('tunnel.retention', true) = 'on' then return null; end if;
      raise exception 'the audit log is only ever added to';
    end $$
  `.execute(db);
};

const mails = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table mail_requests (
      id bigint generated always as identity primary key,
      -- Whether it is anybody's is not asked before the answer.
      email text not null,
      kind text not null check (kind in ('verify', 'reset')),
      at timestamptz not null
    )`.execute(db);
  await sql`
    create table mail_quotas (
      -- SHA-256 of the address, in hex.
      recipient_hash text primary key,
      -- When mails that a stranger can cause were sent to it, milliseconds since the epoch, separated by spaces.
      sent_at text not null default '',
      last_at timestamptz not null
    )`.execute(db);
  await sql`create index mail_quotas_by_time on mail_quotas (last_at)`.execute(db);
};

/** Adds the network of a session, to recognize networks from which an account has signed in before, even in sessions that have ended. */
const logins = async (db: Kysely<unknown>): Promise<void> => {
  // Network of the session: an IPv4 address, or the /64 of an IPv6 address. Empty for IPv6 sessions created before this migration.
  await sql`alter table refresh_families add column network text not null default ''`.execute(db);
  await sql`update refresh_families set network = address where position(':' in address) = 0`.execute(db);
  await sql`create index refresh_families_by_network on refresh_families (user_id, network)`.execute(db);
};

const closing = async (db: Kysely<unknown>): Promise<void> => {
  // Ids of closed tunnels, separated by spaces. Only set if individual tunnels are closed.
  await sql`alter table edge_changes add column tunnel_ids text`.execute(db);
  await sql`
    alter table billing_accounts
      -- When edges were last told to end its tunnels because it is past due.
      add column past_due_closed_at timestamptz,
      -- Its plan allows less than before: when to look (again) for tunnels that are over it. null: nothing is over.
      add column limit_check_at timestamptz,
      -- How far the processor's clock was ahead of ours when the account was last read; null: it goes as ours does.
      add column processor_ahead_ms bigint
  `.execute(db);
  await sql`
    create index billing_accounts_past_due on billing_accounts (past_due_since) where past_due_since is not null
  `.execute(db);
  await sql`
    create index billing_accounts_over_limit on billing_accounts (limit_check_at) where limit_check_at is not null
  `.execute(db);
};
