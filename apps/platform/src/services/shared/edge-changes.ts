// Changes that edges are told of, as rows: announced in the transaction of what changed. edges/read-changes.ts reads the rows.
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';

/** Tunnels that one change names: an edge reads lines of at most 64 KiB. */
export const CLOSED_TUNNELS_PER_CHANGE = 100;

export type AnnouncedChange =
  | { readonly kind: 'key-revoked'; readonly keyId: string; readonly accountId: string }
  /** Its sessions end with this code and text. */
  | { readonly kind: 'account-closed'; readonly accountId: string; readonly code: string; readonly message: string }
  /** These tunnels of it alone, in this order: what is over a plan that allows less than before. */
  | {
      readonly kind: 'tunnels-closed';
      readonly accountId: string;
      readonly tunnelIds: readonly string[];
      readonly code: string;
      readonly message: string;
    }
  /** Plan, limit or rights; edges are sent what holds when they are told. */
  | { readonly kind: 'account-changed'; readonly accountId: string }
  /** A name is reserved now, or not any more; edges are sent what holds when they are told. p2p names are never reserved. */
  | { readonly kind: 'name-changed'; readonly name: NameKey }
  /**
   * An own domain has another holder, or none. Edges are sent whose it is when they are told; `keepsTunnels`: whether those that live on it stay
   * where nobody has it then.
   */
  | { readonly kind: 'domain-changed'; readonly domain: string; readonly keepsTunnels: boolean }
  /** It was issued, failed, or is gone: edges fetch what holds. */
  | { readonly kind: 'certificate-changed'; readonly certificateId: string }
  /** Too many accounts changed to name them: edges ask for every key that they know. */
  | { readonly kind: 'forget' };

/** What tells a name from others. */
export interface NameKey {
  readonly kind: 'subdomain' | 'tcp' | 'udp' | 'p2p';
  /** Of a port or a p2p name; empty for subdomains. */
  readonly regionId: string;
  readonly label: string;
}

/** Kinds of names that an account can reserve. It owns a p2p name by use only. */
export type ReservedKind = Exclude<NameKey['kind'], 'p2p'>;

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
  account_id: 'accountId' in change ? change.accountId : null,
  key_id: change.kind === 'key-revoked' ? change.keyId : null,
  code: 'code' in change ? change.code : null,
  message: 'code' in change ? change.message : null,
  tunnel_ids: change.kind === 'tunnels-closed' ? change.tunnelIds.join(' ') : null,
  name_kind: change.kind === 'name-changed' ? change.name.kind : null,
  name_region: change.kind === 'name-changed' ? change.name.regionId : null,
  name_label: change.kind === 'name-changed' ? change.name.label : null,
  domain: change.kind === 'domain-changed' ? change.domain : null,
  keeps_tunnels: change.kind === 'domain-changed' ? change.keepsTunnels : null,
  certificate_id: change.kind === 'certificate-changed' ? change.certificateId : null,
});

/** As many changes as it takes: a line of the stream is bounded. */
export const splitClosedTunnels = (change: Extract<AnnouncedChange, { kind: 'tunnels-closed' }>): AnnouncedChange[] => {
  const { tunnelIds } = change;
  const most = CLOSED_TUNNELS_PER_CHANGE;
  return Array.from({ length: Math.ceil(tunnelIds.length / most) }, (_, index) => ({
    ...change,
    tunnelIds: tunnelIds.slice(index * most, (index + 1) * most),
  }));
};

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
