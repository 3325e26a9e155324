// How long each table keeps its rows, or why for ever. One line a table: a test compares the list with the tables that there are,
// and docs/security.md shows it.
import type { ServerConfig } from '@tunnel/config/server';
import { type RawBuilder, sql } from 'kysely';
import { LIMITS } from '../limits.ts';
import type { Schema } from './schema.ts';

/** An edge that was away for longer asks for everything anew. */
const CHANGES_KEPT_DAYS = 7;
/** That a mail was sent or given up is known for so long; what it said is gone at once. */
const MAIL_KEPT_DAYS = 7;
/** Webhooks that were dealt with are known for so long: the processor repeats them for days. */
const PROCESSOR_EVENTS_KEPT_DAYS = 30;
/** Which mails about a cap went out: a month needs its own, and some days more. */
const CAP_NOTICES_KEPT_DAYS = 62;
/** How an invoice came about can be looked up for so long. */
const METER_EVENTS_KEPT_DAYS = 100;

type RetentionSettings = ServerConfig['platform']['retention'];

/** Rows that stay until somebody deletes them, or what they belong to. */
interface KeptForEver {
  readonly forEver: string;
}

interface KeptForDays {
  /** As people read it. */
  readonly text: string;
  /** Days, or the key of [platform.retention] that has them; 0 there means for ever. */
  readonly days: number | keyof RetentionSettings;
  /** What tells a row from others. ctid: where it lies, for a table whose key has two columns. */
  readonly key: 'token_hash' | 'id' | 'identifier' | 'recipient_hash' | 'ctid';
  /** Which rows are old, by the time before which they are, and the time of now. */
  readonly old: (before: Date, now: Date) => RawBuilder<unknown>;
  /** Only ever added to, unless the transaction says that it is cleaned up. */
  readonly appendOnly?: true;
}

export type Retention = KeptForEver | KeptForDays;

const DAY_MS = 24 * 60 * 60 * 1000;
/** Longer than any token lives: a session without one is over. */
const SESSION_KEPT_DAYS = 31;

/** Longer than a month is billed for, however late. */
const SILENT_KEPT_DAYS = 62;

export const RETENTION: Readonly<Record<keyof Schema, Retention>> = {
  plans: { forEver: 'no time limit: accounts refer to plans, which come from server.toml' },
  users: {
    text: 'no time limit. Of a deleted account, only the id is kept. Unverified accounts: `unverified_user_days`',
    days: 'unverified_user_days',
    key: 'id',
    // Suspended ones stay: an operator has a reason. One with keys or a bill is in use, however it came to be.
    old: (before) => sql`
      created_at < ${before} and email_verified_at is null and auth_method = 'password' and status = 'active'
      and not exists (select from api_keys where user_id = users.id)
      and not exists (select from billing_accounts where user_id = users.id)`,
  },
  // Those that were rotated stay until they expire: coming with one again is how a thief is noticed.
  refresh_tokens: {
    text: 'until expiry',
    days: 0,
    key: 'token_hash',
    old: (before) => sql`expires_at < ${before}`,
  },
  refresh_families: {
    text: `${SESSION_KEPT_DAYS} days after the last use (address and program of a session)`,
    days: SESSION_KEPT_DAYS,
    key: 'id',
    old: (before) =>
      sql`last_used_at < ${before} and not exists (select from refresh_tokens where family_id = refresh_families.id)`,
  },
  mail_tokens: {
    text: '1 day after expiry',
    days: 1,
    key: 'token_hash',
    old: (before) => sql`expires_at < ${before}`,
  },
  invites: {
    text: 'until used, or 1 day after expiry. The invitation for the first account: until an account exists',
    days: 1,
    key: 'token_hash',
    old: (before) => sql`expires_at < ${before}`,
  },
  account_deletions: { forEver: 'no time limit: the time of deletion, with the account id only' },
  mail_outbox: {
    text: `${MAIL_KEPT_DAYS} days after the email was sent or given up, without the text`,
    days: MAIL_KEPT_DAYS,
    key: 'id',
    old: (before) => sql`coalesce(sent_at, given_up_at) < ${before}`,
  },
  mail_requests: {
    text: 'until processed, usually within a second; at most 1 day',
    days: 1,
    key: 'id',
    old: (before) => sql`at < ${before}`,
  },
  mail_quotas: {
    text: '1 day after the last email, with the SHA-256 of the address',
    days: 1,
    key: 'recipient_hash',
    old: (before) => sql`last_at < ${before}`,
  },
  api_keys: {
    forEver: 'no time limit: a client with a revoked key gets the reason. Keys of a deleted account lose the label',
  },
  edges: { forEver: 'no time limit: few rows; old log entries refer to revoked edges' },
  edge_journals: { forEver: 'no time limit: one number per journal, so that a late batch is stored only once' },
  tunnel_log: {
    text: `\`tunnel_log_days\` after the tunnel was closed; at least ${SILENT_KEPT_DAYS} days if the edge stopped responding`,
    days: 'tunnel_log_days',
    key: 'id',
    // An edge that is back tells what its tunnels carried, and nothing is billed to one that the log does not know.
    old: (before, now) => sql`
      unregistered_at < ${before}
      and (not presumed_closed or unregistered_at < ${new Date(now.getTime() - SILENT_KEPT_DAYS * DAY_MS)})`,
  },
  names: {
    forEver:
      'reserved names until released, used names for `hold_days` (random names `assigned_hold_hours`) after the last use, released names for `grace_days`',
  },
  own_domains: { forEver: 'until the domain is removed or the account is deleted' },
  usage_daily: {
    forEver: 'no time limit: one row per day, for charts and totals; with the id of a deleted account only',
  },
  edge_changes: {
    text: `${CHANGES_KEPT_DAYS} days`,
    days: CHANGES_KEPT_DAYS,
    key: 'id',
    // The newest stays whatever its age, so that the number of the latest change never falls.
    old: (before) => sql`at < ${before} and id < (select max(id) from edge_changes)`,
  },
  audit_log: {
    text: '`audit_days`',
    days: 'audit_days',
    key: 'id',
    old: (before) => sql`at < ${before}`,
    appendOnly: true,
  },
  signing_keys: {
    forEver: 'no time limit: few rows; a replaced key stays without its private part until the next rotation',
  },
  billing_accounts: {
    forEver:
      'no time limit: ids of customer and subscription at the payment processor, to find invoices even after the account was deleted',
  },
  cap_notices: {
    text: `${CAP_NOTICES_KEPT_DAYS} days`,
    days: CAP_NOTICES_KEPT_DAYS,
    key: 'ctid',
    old: (before) => sql`at < ${before}`,
  },
  metered_usage: { forEver: 'no time limit: one row per month, for bills; with the id of a deleted account only' },
  meter_events: {
    text: `${METER_EVENTS_KEPT_DAYS} days after the report to the payment processor`,
    days: METER_EVENTS_KEPT_DAYS,
    key: 'identifier',
    // One that was not taken stays whatever its age.
    old: (before) => sql`sent_at < ${before}`,
  },
  processor_events: {
    text: `${PROCESSOR_EVENTS_KEPT_DAYS} days`,
    days: PROCESSOR_EVENTS_KEPT_DAYS,
    key: 'id',
    old: (before) => sql`received_at < ${before}`,
  },
  idempotency_keys: {
    text: '24 hours',
    days: LIMITS.IDEMPOTENCY_KEPT_MS / DAY_MS,
    key: 'ctid',
    old: (before) => sql`created_at < ${before}`,
  },
  oauth_clients: {
    forEver: 'no time limit: few rows, registered by the operator; old grants refer to revoked clients',
  },
  oauth_requests: {
    text: 'until the user decides; at most 10 minutes',
    days: 0,
    key: 'id',
    old: (before) => sql`expires_at < ${before}`,
  },
  // Those that were rotated stay until they expire, as those of sessions.
  oauth_refresh_tokens: {
    text: 'until expiry',
    days: 0,
    key: 'token_hash',
    old: (before) => sql`expires_at < ${before}`,
  },
  oauth_grants: {
    text: `${SESSION_KEPT_DAYS} days after the last use`,
    days: SESSION_KEPT_DAYS,
    key: 'id',
    old: (before) => sql`
      coalesce(last_used_at, created_at) < ${before}
      and not exists (select from oauth_refresh_tokens where grant_id = oauth_grants.id)`,
  },
  oauth_codes: { forEver: 'one code per grant, deleted with the grant. Using a code twice ends the grant' },
  certificates: {
    forEver:
      'until the domain is removed, or until the certificate of a released name has expired. The key is deleted with the certificate',
  },
  acme_accounts: { forEver: 'no time limit: one account per certificate authority, with its key encrypted' },
  acme_challenges: {
    text: 'until answered; at most 1 day after expiry',
    days: 1,
    key: 'ctid',
    old: (before) => sql`expires_at < ${before}`,
  },
  acme_budgets: { forEver: 'no time limit: few rows, with the times of recent certificate orders' },
  acme_authority: { forEver: 'no time limit: a single row, the certificate authority in use' },
};

/** The time before which rows are old; null: none ever is. */
export const oldBefore = ({ days }: KeptForDays, settings: RetentionSettings, now: number): Date | null => {
  if (typeof days === 'number') return new Date(now - days * DAY_MS);
  return settings[days] === 0 ? null : new Date(now - settings[days] * DAY_MS);
};
