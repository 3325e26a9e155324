// Changes announced to edges, as database rows. A row is inserted in the transaction of the change; edges/read-changes.ts reads the rows.
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';

/** Maximum number of tunnels in a change. Edges read lines of at most 64 KiB. */
export const CLOSED_TUNNELS_PER_CHANGE = 100;

export type AnnouncedChange =
  | { readonly kind: 'key-revoked'; readonly keyId: string; readonly accountId: string }
  /** The account was suspended or deleted. Its sessions end with the given code and text. */
  | { readonly kind: 'account-closed'; readonly accountId: string; readonly code: string; readonly message: string }
  /** Only the listed tunnels of the account are closed, in the listed order, because they exceed the limit of a smaller plan. */
  | {
      readonly kind: 'tunnels-closed';
      readonly accountId: string;
      readonly tunnelIds: readonly string[];
      readonly code: string;
      readonly message: string;
    }
  /** Plan, limit or rights of the account have changed. When an edge is notified, it gets the values current at that time. */
  | { readonly kind: 'account-changed'; readonly accountId: string }
  /** A name was reserved or released. When an edge is notified, it gets the state current at that time. p2p names are never reserved. */
  | { readonly kind: 'name-changed'; readonly name: NameKey }
  /**
   * The holder of a custom domain has changed, or the domain has no holder any more. When an edge is notified, it gets the holder at that
   * time. `keepsTunnels`: if the domain has no holder then, its open tunnels stay open.
   */
  | { readonly kind: 'domain-changed'; readonly domain: string; readonly keepsTunnels: boolean }
  /** The certificate was issued, failed, or was removed. Edges fetch its current state. */
  | { readonly kind: 'certificate-changed'; readonly certificateId: string }
  /** Too many accounts have changed to list them. Edges verify every known key again. */
  | { readonly kind: 'forget' };

/** Identity of a name: kind, region and label. */
export interface NameKey {
  readonly kind: 'subdomain' | 'tcp' | 'udp' | 'p2p';
  /** Region of a port or a p2p name; empty for subdomains. */
  readonly regionId: string;
  readonly label: string;
}

/** Kinds of names that an account can reserve. A p2p name is owned only while in use. */
export type ReservedKind = Exclude<NameKey['kind'], 'p2p'>;

/** PostgreSQL NOTIFY channel for changes. Notifications have no payload: listeners read the rows. */
export const CHANGES_CHANNEL = 'edge_changes';

/**
 * PostgreSQL advisory lock for the order of changes: the ASCII letters 'ec' and the number 1. The prefix keeps the lock ids of different
 * subjects apart.
 */
const ORDER_LOCK = 0x6563_0001;

/**
 * Announces a change to every edge. Inserts a row, which is sent to the edges as soon as the caller's transaction is committed. Change
 * numbers must follow the order of commits: an edge that has seen number 6 would never ask for a number 5 committed later. So only one
 * transaction at a time can announce changes, from this call to its end. Call this function last, after taking all other locks.
 */
export const announceChange = async (trx: Transaction<Schema>, change: AnnouncedChange): Promise<void> =>
  announceChanges(trx, [change]);

/** Announces several changes at once, in the given order. See announceChange. */
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

/** Splits a `tunnels-closed` change into as many changes as necessary, because lines of the change stream have a maximum length. */
export const splitClosedTunnels = (change: Extract<AnnouncedChange, { kind: 'tunnels-closed' }>): AnnouncedChange[] => {
  const { tunnelIds } = change;
  const most = CLOSED_TUNNELS_PER_CHANGE;
  return Array.from({ length: Math.ceil(tunnelIds.length / most) }, (_, index) => ({
    ...change,
    tunnelIds: tunnelIds.slice(index * most, (index + 1) * most),
  }));
};

export interface ChangeRange {
  /** Number of the oldest stored change; 1 if there has never been a change. */
  readonly oldest: number;
  /** Number of the latest change; 0 if there has never been a change. */
  readonly latest: number;
}

/** Returns the numbers of the oldest and the latest stored change. */
export const changeRange = async (db: Db): Promise<ChangeRange> => {
  const row = await db
    .selectFrom('edge_changes')
    .select((rows) => [rows.fn.min('id').as('oldest'), rows.fn.max('id').as('latest')])
    .executeTakeFirst();
  return { oldest: row?.oldest ?? 1, latest: row?.latest ?? 0 };
};
