// Changes that edges are told of, as rows: announced in the transaction of what changed, read after a number, kept for days.
import type { EdgeChange } from '@tunnel/contract';
import { capState, monthOf } from '@tunnel/core';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../db/database.ts';
import type { Schema } from '../db/schema.ts';
import { rightsOf } from './link-answers.ts';

export type AnnouncedChange =
  | { readonly kind: 'key-revoked'; readonly keyId: string; readonly accountId: string }
  /** Its sessions end with this code and text. */
  | { readonly kind: 'account-closed'; readonly accountId: string; readonly code: string; readonly message: string }
  /** Plan, limit or rights; edges are sent what holds when they are told. */
  | { readonly kind: 'account-changed'; readonly accountId: string }
  /** Too many accounts changed to name them: edges ask for every key that they know. */
  | { readonly kind: 'forget' };

/** The channel of NOTIFY. It carries nothing: the rows are the news. */
export const CHANGES_CHANNEL = 'edge_changes';

/** Two letters of ASCII before it, so that it meets no other lock: 'ec' 1. */
const ORDER_LOCK = 0x6563_0001;

/**
 * Tells every edge of a change, by a row that they are sent as soon as the caller's transaction is committed.
 * Numbers are given in the order of commits, else an edge that has seen number 6 would never ask for a 5 that was committed
 * later. So only one transaction at a time announces, from this call to its end: call it last, after every lock you need.
 */
export const announceChange = async (trx: Transaction<Schema>, change: AnnouncedChange): Promise<void> =>
  announceChanges(trx, [change]);

/** All at once, in this order. */
export const announceChanges = async (trx: Transaction<Schema>, changes: readonly AnnouncedChange[]): Promise<void> => {
  if (changes.length === 0) return;
  await sql`select pg_advisory_xact_lock(${ORDER_LOCK})`.execute(trx);
  await trx.insertInto('edge_changes').values(changes.map(rowOf)).execute();
  await sql`select pg_notify(${CHANGES_CHANNEL}, '')`.execute(trx);
};

const rowOf = (change: AnnouncedChange) => ({
  kind: change.kind,
  account_id: change.kind === 'forget' ? null : change.accountId,
  key_id: change.kind === 'key-revoked' ? change.keyId : null,
  code: change.kind === 'account-closed' ? change.code : null,
  message: change.kind === 'account-closed' ? change.message : null,
});

export interface ChangePage {
  readonly changes: readonly EdgeChange[];
  /** The number of the last one that was looked at; null: there is none after. */
  readonly last: number | null;
}

export interface ChangesWanted {
  readonly after: number;
  readonly limit: number;
  readonly now: number;
}

/** Changes after a number, ready to be sent. */
export const readChanges = async (db: Db, { after, limit, now }: ChangesWanted): Promise<ChangePage> => {
  const rows = await db
    .selectFrom('edge_changes as change')
    .leftJoin('users', 'users.id', 'change.account_id')
    .leftJoin('plans', 'plans.name', 'users.plan')
    .select(['change.id', 'change.kind', 'change.account_id', 'change.key_id', 'change.code', 'change.message'])
    .leftJoin('billing_accounts as billed', 'billed.user_id', 'change.account_id')
    .leftJoin('metered_usage as usage', (on) =>
      on.onRef('usage.user_id', '=', 'change.account_id').on('usage.month', '=', monthOf(now)),
    )
    .select(['users.plan', 'plans.tunnel_limit', 'plans.allow_custom_subdomains', 'plans.price_cents_per_gb'])
    .select(['billed.spend_cap_cents', 'usage.bytes'])
    .where('change.id', '>', after)
    .orderBy('change.id')
    .limit(limit)
    .execute();
  return { changes: rows.flatMap((row) => changeOf(row) ?? []), last: rows.at(-1)?.id ?? null };
};

interface ChangeRow {
  readonly id: number;
  readonly kind: string;
  readonly account_id: string | null;
  readonly key_id: string | null;
  readonly code: string | null;
  readonly message: string | null;
  readonly plan: string | null;
  readonly tunnel_limit: number | null;
  readonly allow_custom_subdomains: boolean | null;
  readonly price_cents_per_gb: number | null;
  readonly spend_cap_cents: number | null;
  readonly bytes: number | null;
}

/** null: there is nothing to say any more, because the account is gone, or is not over its cap any more. */
const changeOf = (row: ChangeRow): EdgeChange | null => {
  const { id, account_id } = row;
  if (row.kind === 'forget') return { kind: 'forget', id };
  if (account_id === null) return null;
  if (row.kind === 'key-revoked') return { kind: 'key-revoked', id, key_id: row.key_id ?? '', account_id };
  if (row.kind === 'account-closed') {
    // An edge that hears of it late would end what was opened since the cap was raised.
    if (row.code === 'SPEND_CAP_REACHED' && !isOverCap(row)) return null;
    return { kind: 'account-closed', id, account_id, code: row.code ?? '', message: row.message ?? '' };
  }
  if (row.plan === null) return null;
  const { plan, tunnel_limit } = row;
  const account = rightsOf({
    user_id: account_id,
    plan,
    tunnel_limit,
    allow_custom_subdomains: row.allow_custom_subdomains ?? false,
  });
  return { kind: 'account-changed', id, account };
};

const isOverCap = ({ bytes, price_cents_per_gb, spend_cap_cents }: ChangeRow): boolean =>
  capState({ bytes: bytes ?? 0, priceCentsPerGb: price_cents_per_gb ?? 0, capCents: spend_cap_cents }).reached;

export interface ChangeRange {
  /** Of the oldest that is kept; 1 when there never was one. */
  readonly oldest: number;
  /** 0 when there never was one. */
  readonly latest: number;
}

/** Which changes there still are. */
export const changeRange = async (db: Db): Promise<ChangeRange> => {
  const row = await db
    .selectFrom('edge_changes')
    .select((rows) => [rows.fn.min('id').as('oldest'), rows.fn.max('id').as('latest')])
    .executeTakeFirst();
  return { oldest: row?.oldest ?? 1, latest: row?.latest ?? 0 };
};
