// Rows of names in the database: read, lock, judge by the name-ownership rules, and write.

import type { ServerConfig } from '@tunnel/config/server';
import { FREE_NAME, type NameOwnership, type NameRules, nameAt, WITHHELD_SUBDOMAINS } from '@tunnel/rules/names';
import { type Selectable, sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { NamesTable, Schema } from '../../db/schema.ts';
import type { NameKey } from '../shared/edge-changes.ts';
import type { ServiceContext } from '../shared/service-context.ts';
import { textOfKey } from './name-key.ts';

type Trx = Transaction<Schema>;
export type NameRow = Selectable<NamesTable>;

/** Settings for held and released names: section [names] of server.toml. */
export type NameSettings = ServerConfig['names'];

export interface NamesContext extends Pick<ServiceContext, 'db' | 'clock'> {
  readonly names: NameSettings;
  /** First label of the platform's host if the host is directly below the domain. Accounts cannot reserve this label. */
  readonly platformLabel?: string | null;
}

export interface ReserveContext extends NamesContext {
  /** Setting `[limits] account_share`: the share of a port range that every account can use, even if ports are scarce. */
  readonly accountShare: number;
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/**
 * Returns true for kinds of names that an account holds for a while after using them. Ports are scarce, so using a port does not hold it.
 */
export const isHeldByUse = (kind: NameKey['kind']): boolean => kind === 'subdomain' || kind === 'p2p';

/** Ownership rules for a name. `label` is the name requested by an account; callers that only need the hold times leave it out. */
export const rulesFor = (kind: NameKey['kind'], settings: NameSettings, label = ''): NameRules & HeldTimes => ({
  ...(isHeldByUse(kind) ? heldTimes(settings) : { holdMs: 0, assignedHoldMs: 0 }),
  graceMs: settings.grace_days * DAY_MS,
  isWithheld: kind === 'subdomain' && WITHHELD_SUBDOMAINS.has(label),
});

type HeldTimes = Required<Pick<NameRules, 'holdMs' | 'assignedHoldMs'>>;

/** Hold times of used names. If names are not held by use, names chosen by an edge are not held either. */
const heldTimes = ({ hold_days, assigned_hold_hours }: NameSettings): HeldTimes => ({
  holdMs: hold_days * DAY_MS,
  assignedHoldMs: hold_days === 0 ? 0 : assigned_hold_hours * HOUR_MS,
});

export const lockName = (trx: Trx, key: NameKey): Promise<NameRow | undefined> =>
  trx
    .selectFrom('names')
    .selectAll()
    .where('kind', '=', key.kind)
    .where('region_id', '=', key.regionId)
    .where('label', '=', key.label)
    .forNoKeyUpdate()
    .executeTakeFirst();

/**
 * First half of the PostgreSQL advisory lock for a name: the ASCII letters 'nm'. The second half is the hash of the name. The letters
 * keep the lock ids of different subjects apart.
 */
const NAME_KEY_LOCKS = 0x6e6d;

/**
 * Locks a name like lockName, with an additional advisory lock. For callers that may leave no row behind, or that check which tunnel
 * serves the name: without a row to wait for, the opening of a tunnel and a reservation would not see each other.
 */
export const lockNameKey = async (trx: Trx, key: NameKey): Promise<NameRow | undefined> => {
  await sql`select pg_advisory_xact_lock(${NAME_KEY_LOCKS}, hashtext(${textOfKey(key)}))`.execute(trx);
  return lockName(trx, key);
};

/** Order in which rows of names are locked and inserted. Every transaction that locks several rows uses this order, to avoid deadlocks. */
export const NAME_ORDER = sql`names.kind, names.region_id, names.label collate "C"`;

export const inNameOrder = (a: NameKey, b: NameKey): number => {
  const first = textOfKey(a);
  const second = textOfKey(b);
  if (first === second) return 0;
  return first < second ? -1 : 1;
};

/**
 * First half of the PostgreSQL advisory lock for a bucket of names: the ASCII letters 'nb'. Names are divided into a fixed number of
 * buckets, because locks occupy memory shared by all transactions, and a batch can have many names.
 */
const HEAP_LOCKS = 0x6e62;
const HEAPS = 64;

/**
 * Locks the existing rows of several names before any of the rows is changed. Rows can be inserted and deleted meanwhile, and would then
 * be locked out of order. So a transaction with several names first locks the names' buckets.
 */
export const lockNames = async (trx: Trx, ids: readonly string[], keys: readonly NameKey[]): Promise<void> => {
  if (ids.length + keys.length < 2) return;
  await sql`
    select pg_advisory_xact_lock(${HEAP_LOCKS}, heap) from (
      select distinct abs(hashtext(label) % ${HEAPS}::int) as heap from (
        select label from names where id = any(${ids}::uuid[])
        union all select unnest(${keys.map(({ label }) => label)}::text[])
      ) as wanted order by heap
    ) as heaps
  `.execute(trx);
  await sql`
    select from names
    where id = any(${ids}::uuid[]) or (kind, region_id, label) in (
      select * from unnest(
        ${keys.map(({ kind }) => kind)}::text[],
        ${keys.map(({ regionId }) => regionId)}::text[],
        ${keys.map(({ label }) => label)}::text[]
      )
    )
    order by ${NAME_ORDER} for no key update
  `.execute(trx);
};

/**
 * Returns the number of tunnels that serve the name now. Must be queried after the row was locked, because the number may have changed
 * while waiting for the lock.
 */
export const countOpenTunnels = async (db: Db | Trx, nameId: string): Promise<number> => {
  const { open } = await db
    .selectFrom('tunnel_log')
    .select((rows) => rows.fn.countAll<number>().as('open'))
    .where('name_id', '=', nameId)
    .where('unregistered_at', 'is', null)
    .executeTakeFirstOrThrow();
  return open;
};

export const ownershipOf = (row: NameRow, openTunnels: number): NameOwnership => {
  const owned = {
    ownerId: row.user_id,
    groupKeyHash: row.group_key_hash,
    openTunnels,
    lastUsedAt: row.last_used_at?.getTime() ?? null,
    ...(row.assigned ? { isAssigned: true as const } : {}),
  };
  if (row.state === 'reserved') return { kind: 'reserved', ...owned };
  if (row.state === 'held') {
    // The name was claimed for a tunnel that found no free slot; the entry of the tunnel was deleted from the log.
    return openTunnels === 0 && owned.lastUsedAt === null ? FREE_NAME : { kind: 'held', ...owned };
  }
  const since = row.released_at ?? (openTunnels === 0 ? (row.last_used_at ?? row.created_at) : null);
  return { kind: 'released', ...owned, releasedAt: since?.getTime() ?? null };
};

/**
 * Returns the current ownership of a name. Tunnels are counted only where the number matters: for a name that would have expired without
 * open tunnels.
 */
export const readOwnership = async (
  db: Db | Trx,
  row: NameRow | undefined,
  now: number,
  rules: NameRules,
): Promise<NameOwnership> => {
  if (row === undefined) return FREE_NAME;
  const idle = ownershipOf(row, 0);
  if (row.state === 'reserved' || (nameAt(idle, now, rules) === idle && idle !== FREE_NAME)) return idle;
  return nameAt(ownershipOf(row, await countOpenTunnels(db, row.id)), now, rules);
};

const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

/** Inserts the row of a name. Returns null if another transaction inserted the row meanwhile. */
export const insertName = async (
  trx: Trx,
  key: NameKey,
  name: Exclude<NameOwnership, { kind: 'free' }>,
  now: number,
): Promise<NameRow | null> => {
  const row = await trx
    .insertInto('names')
    .values({
      kind: key.kind,
      region_id: key.regionId,
      label: key.label,
      created_at: new Date(now),
      ...columnsOf(name),
    })
    .onConflict((conflict) => conflict.columns(['kind', 'region_id', 'label']).doNothing())
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
};

/** Updates the row of a name. If `anew` is set, the name was free, and the row becomes another reservation with a new id. */
export const updateName = (
  trx: Trx,
  row: NameRow,
  name: Exclude<NameOwnership, { kind: 'free' }>,
  anew: { readonly at: number } | null,
): Promise<NameRow> =>
  trx
    .updateTable('names')
    .set({
      ...columnsOf(name),
      ...(anew === null ? {} : { id: sql<string>`gen_random_uuid()`, created_at: new Date(anew.at) }),
    })
    .where('id', '=', row.id)
    .returningAll()
    .executeTakeFirstOrThrow();

export const deleteName = async (trx: Trx, { id }: NameRow): Promise<void> => {
  await trx.deleteFrom('names').where('id', '=', id).execute();
};

const columnsOf = (name: Exclude<NameOwnership, { kind: 'free' }>) => ({
  user_id: name.ownerId,
  state: name.kind,
  group_key_hash: name.groupKeyHash,
  last_used_at: dateOf(name.lastUsedAt),
  released_at: name.kind === 'released' ? dateOf(name.releasedAt) : null,
  assigned: name.isAssigned === true,
});

export interface NameUse {
  readonly nameId: string;
  readonly at: Date;
}

/** Updates the time of last use for names after the end of their tunnels. */
export const noteLastUse = async (trx: Trx, uses: readonly NameUse[]): Promise<void> => {
  if (uses.length === 0) return;
  await sql`
    with used as (
      select names.id, told.at from names
      join (
        select id, max(at) as at from unnest(
          ${uses.map(({ nameId }) => nameId)}::uuid[], ${uses.map(({ at }) => at.toISOString())}::timestamptz[]
        ) as each (id, at) group by id
      ) as told on told.id = names.id
      where names.last_used_at is null or names.last_used_at < told.at
      order by ${NAME_ORDER} for no key update of names
    )
    update names set last_used_at = greatest(names.last_used_at, used.at) from used where names.id = used.id
  `.execute(trx);
};
