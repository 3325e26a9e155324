// Names and ports of an account: list and release. Reserving is in reserve.ts.
import type { Reservation } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { holdMsOf, type NameOwnership, nameAt, nameEndsAt, transitionName } from '@tunnel/rules/names';
import { sql, type Transaction } from 'kysely';
import { isUuid, type Schema } from '../../db/schema.ts';
import { writeAudit } from '../shared/audit.ts';
import { type AnnouncedChange, announceChanges, type NameKey, type ReservedKind } from '../shared/edge-changes.ts';
import type { UserActor } from '../shared/service-context.ts';
import { capReleasedNames } from './cap-released-names.ts';
import {
  countOpenTunnels,
  deleteName,
  lockName,
  NAME_ORDER,
  type NameRow,
  type NameSettings,
  type NamesContext,
  ownershipOf,
  rulesFor,
  updateName,
} from './name-rows.ts';
import { type Regions, readRegions } from './port-regions.ts';

type Trx = Transaction<Schema>;
type OwnedName = Exclude<NameOwnership, { kind: 'free' }>;

interface ListedRow extends NameRow {
  readonly active_tunnels: number;
  /** Time at which the most recent open tunnel was opened; null without open tunnels. */
  readonly opened_at: Date | null;
}

/** Lists the account's names and ports, oldest first. Expired names are left out, even if the job has not deleted them yet. */
export const listReservations = async (
  { db, clock, names }: NamesContext,
  { userId }: UserActor,
): Promise<Reservation[]> => {
  const { rows } = await sql<ListedRow>`
    select names.*, open.active_tunnels, open.opened_at from names
    cross join lateral (
      select count(*) as active_tunnels, max(registered_at) as opened_at from tunnel_log
      where name_id = names.id and unregistered_at is null
    ) as open
    -- p2p names are owned by use only, and cannot be reserved.
    where user_id = ${userId} and kind <> 'p2p' order by created_at, id
  `.execute(db);
  const regions = await readRegions(db, clock.now());
  return rows.flatMap((row) => {
    const name = nameAt(ownershipOf(row, row.active_tunnels), clock.now(), rulesFor(row.kind, names));
    return name.kind === 'free' ? [] : [reservationOf(row, name, { names, regions, openedAt: row.opened_at })];
  });
};

interface Shown {
  readonly names: NameSettings;
  readonly regions: Regions;
  readonly openedAt: Date | null;
}

export const reservationOf = (row: NameRow, name: OwnedName, { names, regions, openedAt }: Shown): Reservation => {
  const rules = rulesFor(row.kind, names);
  return {
    id: row.id,
    // p2p names are excluded from the list, so the cast is safe.
    kind: row.kind as ReservedKind,
    label: row.label,
    region_id: row.kind === 'subdomain' ? null : row.region_id,
    state: name.kind,
    assigned: name.isAssigned === true,
    public_address: regions.addressOf(keyOf(row)),
    active_tunnels: name.openTunnels,
    created_at: row.created_at.toISOString(),
    last_used_at: (openedAt ?? row.last_used_at)?.toISOString() ?? null,
    expires_at: dateOf(nameEndsAt(name, rules)),
    hold_seconds: holdMsOf(name, rules) / 1000,
    grace_seconds: rules.graceMs / 1000,
  };
};

const dateOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

export const keyOf = ({ kind, region_id, label }: NameRow): NameKey => ({ kind, regionId: region_id, label });

/** Releases a name or port. For a while, only the same account can take the name again. A name released earlier does not change. */
export const releaseReservation = async (
  { db, clock, names }: NamesContext,
  { userId }: UserActor,
  id: string,
): Promise<void> => {
  if (!isUuid(id)) throw new Fault('RESERVATION_UNKNOWN');
  await db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom('names')
      .selectAll()
      .where('id', '=', id)
      .where('user_id', '=', userId)
      .forNoKeyUpdate()
      .executeTakeFirst();
    if (row === undefined) throw new Fault('RESERVATION_UNKNOWN');
    const released = await releaseRow(trx, row, names, clock.now());
    if (released === null) throw new Fault('RESERVATION_UNKNOWN');
    // The wildcard below a released name is released too.
    const below =
      row.kind === 'subdomain' ? await lockName(trx, { ...keyOf(row), label: `*.${row.label}` }) : undefined;
    const along = below?.user_id === userId ? await releaseRow(trx, below, names, clock.now()) : null;
    if (released.done) {
      await capReleasedNames(trx, userId, row.kind);
      await writeAudit(trx, {
        actor: `user:${userId}`,
        action: 'name.released',
        userId,
        details: { reservation_id: id, kind: row.kind, label: row.label },
      });
    }
    await announceChanges(trx, [...released.changes, ...(along?.changes ?? [])]);
  });
};

interface Released {
  /** False if the name was released earlier. */
  readonly done: boolean;
  readonly changes: readonly AnnouncedChange[];
}

/** Releases the name of a row. Returns null if the name has expired and no longer belongs to the account. */
const releaseRow = async (trx: Trx, row: NameRow, names: NameSettings, now: number): Promise<Released | null> => {
  const rules = rulesFor(row.kind, names);
  const before = nameAt(ownershipOf(row, await countOpenTunnels(trx, row.id)), now, rules);
  if (before.kind === 'free') return null;
  const [after, effects] = transitionName(before, { kind: 'release', by: row.user_id }, now, rules);
  if (after.kind === 'free') await deleteName(trx, row);
  else if (effects.length > 0) await updateName(trx, row, after, null);
  const wasReserved = effects.some(({ kind }) => kind === 'unreserved');
  return { done: effects.length > 0, changes: wasReserved ? [{ kind: 'name-changed', name: keyOf(row) }] : [] };
};

/** Releases all names of a deleted account at once. The names stay blocked for the usual time; afterwards a job deletes the rows. */
export const releaseAllNames = async (trx: Trx, userId: string, now: number): Promise<void> => {
  const rows = await trx
    .selectFrom('names')
    .selectAll()
    .where('user_id', '=', userId)
    .where('state', '<>', 'released')
    .orderBy(NAME_ORDER)
    .forNoKeyUpdate()
    .execute();
  if (rows.length === 0) return;
  await sql`
    update names set state = 'released', group_key_hash = null,
      released_at = case when exists (
        select from tunnel_log where name_id = names.id and unregistered_at is null
      ) then null else ${new Date(now)}::timestamptz end
    where id = any(${rows.map(({ id }) => id)}::uuid[])
  `.execute(trx);
  const unreserved = rows.filter(({ state }) => state === 'reserved');
  await announceChanges(
    trx,
    unreserved.map((row) => ({ kind: 'name-changed', name: keyOf(row) })),
  );
};
