// Tells every edge of a change, by a row that they are sent as soon as the caller's transaction is committed.
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';

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
