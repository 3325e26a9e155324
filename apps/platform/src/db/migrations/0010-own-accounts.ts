// Adds invitations, changes of the email address, and account deletions by the owner.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['mail_outbox', 'mail_requests', 'mail_tokens'];

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await invites(db);
  await mails(db);
  await deletions(db);
};

const invites = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table invites (
      -- SHA-256 in hex; the row goes when the invitation is used.
      token_hash text primary key,
      -- Trimmed and in lower case, as those of users.
      email text not null,
      created_at timestamptz not null default now(),
      expires_at timestamptz not null
    )`.execute(db);
  await sql`create index invites_of_email on invites (email)`.execute(db);
  await sql`create index invites_by_expiry on invites (expires_at)`.execute(db);
};

const mails = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    alter table mail_tokens
      drop constraint mail_tokens_kind_check,
      add constraint mail_tokens_kind_check check (kind in ('verify', 'reset', 'change')),
      -- Of a change: the address that it proves.
      add column new_email text
  `.execute(db);
  await sql`
    alter table mail_requests
      drop constraint mail_requests_kind_check,
      add constraint mail_requests_kind_check check (kind in ('verify', 'reset', 'change')),
      -- Of a change: whose address it shall become.
      add column user_id uuid
  `.execute(db);
  // Account that the mail is about. A deleted account's mails are deleted with the account, including mails to an earlier address.
  await sql`alter table mail_outbox add column user_id uuid`.execute(db);
  await sql`create index mail_outbox_of_user on mail_outbox (user_id) where user_id is not null`.execute(db);
};

const deletions = async (db: Kysely<unknown>): Promise<void> => {
  // The row of a deleted account stays, without personal data, because usage sums and bills refer to its id.
  await sql`alter table users add column deleted_at timestamptz`.execute(db);
  await sql`
    create table account_deletions (
      user_id uuid primary key references users (id) on delete cascade,
      begun_at timestamptz not null,
      -- At the payment processor; null: not yet.
      subscription_ended_at timestamptz,
      ended_at timestamptz,
      next_try_at timestamptz not null,
      -- Failures in a row of the step that is next.
      attempts integer not null default 0
    )`.execute(db);
  await sql`create index account_deletions_waiting on account_deletions (next_try_at) where ended_at is null`.execute(
    db,
  );
};
