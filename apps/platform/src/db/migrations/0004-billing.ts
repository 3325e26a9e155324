// Creates the accounts at the payment processor, metered usage and its reports, spend caps, and idempotency keys, by which a repeated
// request is executed only once.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await accounts(db);
  await metering(db);
  await requests(db);
};

const accounts = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table billing_accounts (
      user_id uuid primary key references users (id) on delete cascade,
      -- At the processor; null until the first call that needs one.
      customer_id text unique,
      has_payment_method boolean not null default false,
      subscription_id text,
      subscription_status text check (subscription_status in ('active', 'past_due', 'canceled')),
      -- Set to end: shown as canceled, and goes on until then.
      cancels_at_period_end boolean not null default false,
      current_period_end timestamptz,
      -- The subscription's start: what was used before is never billed.
      metered_from timestamptz,
      -- When we first saw it past due.
      past_due_since timestamptz,
      -- When the mail of this spell was sent.
      past_due_mailed_at timestamptz,
      -- How many were begun: makes the key of the next one.
      subscriptions integer not null default 0,
      spend_cap_cents bigint check (spend_cap_cents >= 0),
      -- When edges were last told to end its tunnels because of the cap.
      cap_closed_at timestamptz,
      -- When the processor was last read.
      synced_at timestamptz,
      updated_at timestamptz not null default now()
    )`.execute(db);
  await sql`create index billing_accounts_capped on billing_accounts (user_id) where spend_cap_cents is not null`.execute(
    db,
  );
  await sql`create index billing_accounts_by_sync on billing_accounts (synced_at) where customer_id is not null`.execute(
    db,
  );
  await sql`
    create table cap_notices (
      user_id uuid not null references users (id) on delete cascade,
      month text not null,
      percent integer not null,
      at timestamptz not null default now(),
      primary key (user_id, month, percent)
    )`.execute(db);
};

const metering = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table metered_usage (
      user_id uuid not null references users (id) on delete cascade,
      -- YYYY-MM, in UTC.
      month text not null,
      bytes bigint not null default 0,
      -- How much of it became meter events, and how many of them.
      cut_bytes bigint not null default 0,
      cuts integer not null default 0,
      primary key (user_id, month)
    )`.execute(db);
  await sql`create index metered_usage_uncut on metered_usage (user_id, month) where bytes > cut_bytes`.execute(db);
  await sql`
    create table meter_events (
      -- <user>-<month>-<n>: the processor counts one once.
      identifier text primary key,
      user_id uuid not null references users (id) on delete cascade,
      month text not null,
      bytes bigint not null check (bytes > 0),
      occurred_at timestamptz not null,
      created_at timestamptz not null default now(),
      next_try_at timestamptz not null default now(),
      attempts integer not null default 0,
      -- Taken by a process until then.
      claimed_until timestamptz,
      -- Written before the first call, so that a crash in the call leaves a trace.
      first_tried_at timestamptz,
      sent_at timestamptz
    )`.execute(db);
  await sql`create index meter_events_waiting on meter_events (next_try_at) where sent_at is null`.execute(db);
  await sql`create index meter_events_of_user on meter_events (user_id, month)`.execute(db);
  await sql`create index meter_events_by_time on meter_events (sent_at)`.execute(db);
};

const requests = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    create table processor_events (
      id text primary key,
      type text not null,
      customer_id text,
      received_at timestamptz not null default now(),
      handled_at timestamptz
    )`.execute(db);
  await sql`create index processor_events_by_time on processor_events (received_at)`.execute(db);
  await sql`
    create table idempotency_keys (
      user_id uuid not null references users (id) on delete cascade,
      -- A hash of the key: what is kept can only be opened by whoever has it.
      key text not null,
      operation text not null,
      request_hash text not null,
      created_at timestamptz not null default now(),
      -- The answer; null while the request is under way.
      status integer,
      body text,
      primary key (user_id, key)
    )`.execute(db);
  await sql`create index idempotency_keys_by_time on idempotency_keys (created_at)`.execute(db);
};
