// Retention time of every table, or the reason for keeping its rows without a limit. A test compares the list with the existing tables,
// and docs/security.md shows the list.
import type { ServerConfig } from '@tunnel/config/server';
import { type RawBuilder, sql } from 'kysely';
import { LIMITS } from '../limits.ts';
import type { Schema } from './schema.ts';

/** Days for which changes announced to edges are kept. An edge that was offline for longer loads everything again. */
const CHANGES_KEPT_DAYS = 7;
/** Days for which the record of a sent or abandoned mail is kept. The text of the mail is deleted at once. */
const MAIL_KEPT_DAYS = 7;
/** Days for which handled webhooks are remembered, because the payment processor repeats webhooks for days. */
const PROCESSOR_EVENTS_KEPT_DAYS = 30;
/** Days for which sent notices about a spend cap are kept. The job needs the current month's notices; the rest is margin. */
const CAP_NOTICES_KEPT_DAYS = 62;
/** Days for which reported meter events are kept, to explain invoices. */
const METER_EVENTS_KEPT_DAYS = 100;

type RetentionSettings = ServerConfig['platform']['retention'];

/** Rows without a time limit, deleted only explicitly or together with their owner. */
interface KeptForEver {
  readonly forEver: string;
}

interface KeptForDays {
  /** The retention time in words, for the documentation. */
  readonly text: string;
  /** Number of days, or the key of [platform.retention] with the number; 0 in the configuration means no limit. */
  readonly days: number | keyof RetentionSettings;
  /** Column that identifies a row. `ctid` is the row's physical location, for tables with a two-column key. */
  readonly key: 'token_hash' | 'id' | 'identifier' | 'recipient_hash' | 'ctid';
  /** Builds the SQL condition for old rows from the cutoff time and the current time. */
  readonly old: (before: Date, now: Date) => RawBuilder<unknown>;
  /** True for an append-only table. Deleting rows requires a setting in the cleanup's transaction. */
  readonly appendOnly?: true;
}

export type Retention = KeptForEver | KeptForDays;

const DAY_MS = 24 * 60 * 60 * 1000;
/** Days for which unused sessions are kept. Longer than the lifetime of every token, so a session without tokens has ended. */
const SESSION_KEPT_DAYS = 31;

/** Minimum days for which entries of a silent edge are kept. Longer than usage of a month can still be billed, however late. */
const SILENT_KEPT_DAYS = 62;

export const RETENTION: Readonly<Record<keyof Schema, Retention>> = {
  plans: { forEver: 'no time limit: accounts refer to plans, which come from server.toml' },
  users: {
    text: 'no time limit. Of a deleted account, only the id is kept. Unverified accounts: `unverified_user_days`',
    days: 'unverified_user_days',
    key: 'id',
    // Suspended accounts are kept, because an operator suspended them for a reason. An account with keys or billing data is in use, even
    // if unverified.
    old: (before) => sql`
      created_at < ${before} and email_verified_at is null and auth_method = 'password' and status = 'active'
      and not exists (select from api_keys where user_id = users.id)
      and not exists (select from billing_accounts where user_id = users.id)`,
  },
  // Rotated tokens are kept until they expire, because a reuse of a rotated token reveals theft.
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
    // An edge that comes back reports the traffic of its tunnels. Traffic of a tunnel missing in the log would not be billed.
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
    // The newest change is kept whatever its age, so that the number of the latest change never decreases.
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
    // An event not yet accepted by the payment processor is kept whatever its age.
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
  // Rotated tokens are kept until they expire, like the refresh tokens of sessions.
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
  schema_notes: { forEver: 'no time limit: one row for each migration of the tables' },
};

/** Returns the time before which rows are old. Null if rows are kept without a limit. */
export const oldBefore = ({ days }: KeptForDays, settings: RetentionSettings, now: number): Date | null => {
  if (typeof days === 'number') return new Date(now - days * DAY_MS);
  return settings[days] === 0 ? null : new Date(now - settings[days] * DAY_MS);
};
