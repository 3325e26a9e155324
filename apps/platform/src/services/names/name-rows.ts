// The rows of names, as name-ownership sees them: read and locked, judged, written.

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

/** [names] of server.toml. */
export type NameSettings = ServerConfig['names'];

export interface NamesContext extends Pick<ServiceContext, 'db' | 'clock'> {
  readonly names: NameSettings;
  /** Of the platform's host, where that is right below the domain: nobody's to reserve. */
  readonly platformLabel?: string | null;
}

export interface ReserveContext extends NamesContext {
  /** `[limits] account_share`: the part of a port range that one account may have in any case. */
  readonly accountShare: number;
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/** Kinds of names that an account keeps for a while by using them. Ports are scarce, so an account does not get to keep a port by using it. */
export const isHeldByUse = (kind: NameKey['kind']): boolean => kind === 'subdomain' || kind === 'p2p';

/** What holds for names of a kind. `label` is the name that an account asks for; callers that only ask how long names are held leave it out. */
export const rulesFor = (kind: NameKey['kind'], settings: NameSettings, label = ''): NameRules & HeldTimes => ({
  ...(isHeldByUse(kind) ? heldTimes(settings) : { holdMs: 0, assignedHoldMs: 0 }),
  graceMs: settings.grace_days * DAY_MS,
  isWithheld: kind === 'subdomain' && WITHHELD_SUBDOMAINS.has(label),
});

type HeldTimes = Required<Pick<NameRules, 'holdMs' | 'assignedHoldMs'>>;

/** Where names are not held by use, those that an edge chose are not either. */
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

/** Two letters of ASCII before the number of the text, so that it meets no other lock: 'nm'. */
const NAME_KEY_LOCKS = 0x6e6d;

/**
 * The same for whoever may leave no row behind, or looks at who serves the name: where there is no row to wait for, a tunnel that is
 * being opened and a reservation would not see each other.
 */
export const lockNameKey = async (trx: Trx, key: NameKey): Promise<NameRow | undefined> => {
  await sql`select pg_advisory_xact_lock(${NAME_KEY_LOCKS}, hashtext(${textOfKey(key)}))`.execute(trx);
  return lockName(trx, key);
};

/** The order in which rows are locked and made: whoever locks several at once does it in this one, so that nobody waits in a circle. */
export const NAME_ORDER = sql`names.kind, names.region_id, names.label collate "C"`;

export const inNameOrder = (a: NameKey, b: NameKey): number => {
  const first = textOfKey(a);
  const second = textOfKey(b);
  if (first === second) return 0;
  return first < second ? -1 : 1;
};

/** As above: 'nb'. In so many heaps, however many names a batch has: locks are kept in memory that all transactions share. */
const HEAP_LOCKS = 0x6e62;
const HEAPS = 64;

/**
 * Those that are there, before the first of them is changed. Others may come and go meanwhile, and would then be met out of order: so
 * whoever has several first locks the heaps that they are in.
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

/** Tunnels that serve it now. Asked after the row is locked: who waited for the lock must not count what was before. */
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
    // Claimed for a tunnel that found no place: its entry has left the log.
    return openTunnels === 0 && owned.lastUsedAt === null ? FREE_NAME : { kind: 'held', ...owned };
  }
  const since = row.released_at ?? (openTunnels === 0 ? (row.last_used_at ?? row.created_at) : null);
  return { kind: 'released', ...owned, releasedAt: since?.getTime() ?? null };
};

/** As it is now. Tunnels are counted only where they matter: for a name whose time would be over without them. */
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

/** null: somebody else made the row meanwhile, and has it. */
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

/** `anew`: it was free, and is another reservation from now on, with an id of its own. */
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

/** Tunnels of these names have ended. */
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
