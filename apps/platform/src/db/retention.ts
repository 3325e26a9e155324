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
  plans: { forEver: 'accounts have them; written from server.toml' },
  users: {
    text: 'for ever, of a deleted one its id alone; those that never verified their address `unverified_user_days`',
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
    text: 'until they expire',
    days: 0,
    key: 'token_hash',
    old: (before) => sql`expires_at < ${before}`,
  },
  refresh_families: {
    text: `${SESSION_KEPT_DAYS} days after the last use: address and program of a log-in`,
    days: SESSION_KEPT_DAYS,
    key: 'id',
    old: (before) =>
      sql`last_used_at < ${before} and not exists (select from refresh_tokens where family_id = refresh_families.id)`,
  },
  mail_tokens: {
    text: '1 day after they expire',
    days: 1,
    key: 'token_hash',
    old: (before) => sql`expires_at < ${before}`,
  },
  invites: {
    text: 'until it is used; 1 day after it expires; that of the first account until there is one',
    days: 1,
    key: 'token_hash',
    old: (before) => sql`expires_at < ${before}`,
  },
  account_deletions: { forEver: 'when an account was deleted, by its id alone' },
  mail_outbox: {
    text: `${MAIL_KEPT_DAYS} days after it was sent or given up, without its text`,
    days: MAIL_KEPT_DAYS,
    key: 'id',
    old: (before) => sql`coalesce(sent_at, given_up_at) < ${before}`,
  },
  mail_requests: {
    text: 'until it is dealt with, within a second; 1 day at most',
    days: 1,
    key: 'id',
    old: (before) => sql`at < ${before}`,
  },
  mail_quotas: {
    text: '1 day after the last mail, by the SHA-256 of the address',
    days: 1,
    key: 'recipient_hash',
    old: (before) => sql`last_at < ${before}`,
  },
  api_keys: {
    forEver: 'a revoked one says so to whoever still uses it; those of a deleted account without their label',
  },
  edges: { forEver: 'a few; a revoked one is what old entries of the log point at' },
  edge_journals: { forEver: 'one number a journal: a batch that comes late is stored once' },
  tunnel_log: {
    text: `\`tunnel_log_days\` after the tunnel ended; a living one stays, one whose edge fell silent ${SILENT_KEPT_DAYS} days at least`,
    days: 'tunnel_log_days',
    key: 'id',
    // An edge that is back tells what its tunnels carried, and nothing is billed to one that the log does not know.
    old: (before, now) => sql`
      unregistered_at < ${before}
      and (not presumed_closed or unregistered_at < ${new Date(now.getTime() - SILENT_KEPT_DAYS * DAY_MS)})`,
  },
  names: {
    forEver:
      'reserved: until it is released; by use: `hold_days` after the last, `assigned_hold_hours` when the edge chose it; released: `grace_days`; a job ends them',
  },
  own_domains: { forEver: 'until it is removed, or its account is deleted' },
  usage_daily: { forEver: 'a row a day, which charts and sums are made of; of a deleted account by its id alone' },
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
  signing_keys: { forEver: 'a few; one that was rotated out without its private part, until the next rotation' },
  billing_accounts: {
    forEver: 'customer and subscription at the processor, also of a deleted account: its invoices are found by them',
  },
  cap_notices: {
    text: `${CAP_NOTICES_KEPT_DAYS} days`,
    days: CAP_NOTICES_KEPT_DAYS,
    key: 'ctid',
    old: (before) => sql`at < ${before}`,
  },
  metered_usage: { forEver: 'a row a month, which bills are made of; of a deleted account by its id alone' },
  meter_events: {
    text: `${METER_EVENTS_KEPT_DAYS} days after it was reported`,
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
  oauth_clients: { forEver: 'a few that an operator registered; a revoked one is what old grants point at' },
  oauth_requests: {
    text: 'until its user decides; 10 minutes at most',
    days: 0,
    key: 'id',
    old: (before) => sql`expires_at < ${before}`,
  },
  // Those that were rotated stay until they expire, as those of sessions.
  oauth_refresh_tokens: {
    text: 'until they expire',
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
  oauth_codes: { forEver: 'one a grant, and goes with it: coming with a used one again ends the grant' },
  certificates: {
    forEver:
      'until its domain is removed, or a name that was given back outlives its certificate; its key goes with it',
  },
  acme_accounts: { forEver: 'one an authority; its key sealed' },
  acme_challenges: {
    text: '1 day after it expires, mostly until it was looked at',
    days: 1,
    key: 'ctid',
    old: (before) => sql`expires_at < ${before}`,
  },
  acme_budgets: { forEver: 'a few: when orders were made lately' },
  acme_authority: { forEver: 'one row: which authority is in use' },
};

/** The time before which rows are old; null: none ever is. */
export const oldBefore = ({ days }: KeptForDays, settings: RetentionSettings, now: number): Date | null => {
  if (typeof days === 'number') return new Date(now - days * DAY_MS);
  return settings[days] === 0 ? null : new Date(now - settings[days] * DAY_MS);
};
