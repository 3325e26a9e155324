// Reserves a name or port for an account until the account releases it.
import { randomInt } from 'node:crypto';
import type { NewReservation, Reservation } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import {
  foldSubdomain,
  generateName,
  portsPerAccount,
  problemOfSubdomain,
  shownText,
  transitionName,
} from '@tunnel/rules/names';
import { refusalToKeep } from '@tunnel/rules/rate';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import { writeAudit } from '../shared/audit.ts';
import { type CreationContext, countCreation } from '../shared/creations.ts';
import { announceChange, type NameKey } from '../shared/edge-changes.ts';
import type { UserActor } from '../shared/service-context.ts';
import { decidingKey } from './name-key.ts';
import {
  countOpenTunnels,
  inNameOrder,
  insertName,
  lockName,
  lockNameKey,
  type NameRow,
  ownershipOf,
  type ReserveContext,
  readOwnership,
  rulesFor,
  updateName,
} from './name-rows.ts';
import { freePorts, isServedByOther, portsTaken, type Regions, readRegions } from './port-regions.ts';
import { keyOf, reservationOf } from './reservations.ts';

/** Number of random names tried for a reservation without a name. */
const FREE_NAME_TRIES = 5;

type Trx = Transaction<Schema>;

export interface Reserved {
  readonly reservation: Reservation;
  /** False if the account had reserved the name already. */
  readonly isNew: boolean;
}

export const reserve = async (
  context: ReserveContext & CreationContext,
  { userId }: UserActor,
  wanted: NewReservation,
): Promise<Reserved> => {
  const { db, clock, names } = context;
  const regions = await readRegions(db, clock.now());
  return db.transaction().execute(async (trx) => {
    const account = await lockAccount(trx, userId);
    const reservation = new Reserving({ trx, userId, context, regions, limit: account.reserved_limit });
    const { row, isNew } = await takeWanted(reservation, wanted, regions, account);
    const name = ownershipOf(row, await countOpenTunnels(trx, row.id));
    if (name.kind === 'free') throw new Error('a name that was just reserved is free');
    if (isNew) {
      await countCreation(trx, context, userId);
      await tellOf(trx, row, userId);
    }
    return { reservation: reservationOf(row, name, { names, regions, openedAt: null }), isNew };
  });
};

interface AccountRow {
  readonly plan: string;
  readonly reserved_limit: number | null;
  readonly allow_custom_subdomains: boolean;
}

/** Locks the account, so that concurrent requests count one after the other. Otherwise every request could pass the limit. */
const lockAccount = async (trx: Trx, userId: string): Promise<AccountRow> => {
  const account = await trx
    .selectFrom('users')
    .innerJoin('plans', 'plans.name', 'users.plan')
    .select(['users.plan', 'users.deleted_at', 'plans.reserved_limit', 'plans.allow_custom_subdomains'])
    .where('users.id', '=', userId)
    .forNoKeyUpdate('users')
    .executeTakeFirst();
  // A request that began before the account's deletion must not reserve a name afterwards.
  if (account === undefined || account.deleted_at !== null) throw new Fault('ACCESS_TOKEN_INVALID');
  return account;
};

const tellOf = async (trx: Trx, row: NameRow, userId: string): Promise<void> => {
  await writeAudit(trx, {
    actor: `user:${userId}`,
    action: 'name.reserved',
    userId,
    details: { reservation_id: row.id, kind: row.kind, label: row.label },
  });
  await announceChange(trx, { kind: 'name-changed', name: keyOf(row) });
};

const badRequest = (reason: string): Fault => new Fault('API_BAD_REQUEST', { reason });

/** Determines the requested name or port, or chooses a free one, and reserves it for the account. */
const takeWanted = async (
  reserving: Reserving,
  { kind, label, region_id }: NewReservation,
  regions: Regions,
  account: AccountRow,
): Promise<Taken> => {
  if (kind === 'subdomain') {
    if (region_id !== undefined) throw badRequest('region_id: a subdomain is reserved in every region');
    if (label === undefined) return reserving.anyOf(Array.from({ length: FREE_NAME_TRIES }, newSubdomain));
    if (!account.allow_custom_subdomains) throw new Fault('TUNNEL_CUSTOM_SUBDOMAIN', { plan: account.plan });
    return reserving.subdomain(subdomainOf(label, reserving.platformLabel));
  }
  const regionId = regions.choose(region_id);
  const range = regions.range(kind, regionId);
  if (label === undefined) {
    const free = await freePorts(reserving.trx, { kind, regionId }, range);
    if (free.length === 0) throw new Fault('TUNNEL_PORTS_EXHAUSTED', { range: `${kind}_port_range`, ...range });
    return reserving.anyOf(free.map((port) => ({ kind, regionId, label: port })));
  }
  if (!/^[1-9]\d{0,4}$/.test(label)) throw badRequest('label: must be a port as text');
  const port = Number(label);
  if (port < range.from || port > range.to) throw new Fault('TUNNEL_PORT_OUT_OF_RANGE', { port, ...range });
  return reserving.one({ kind, regionId, label });
};

const newSubdomain = (): NameKey => ({ kind: 'subdomain', regionId: '', label: generateName(chance) });

/** Random number in [0, 1) from a cryptographic source, so that generated names cannot be guessed. */
const chance = (): number => randomInt(2 ** 32) / 2 ** 32;

/** Normalizes the label of a subdomain. Throws if the label is invalid, or if it needs no separate reservation. */
const subdomainOf = (label: string, platformLabel: string | null): string => {
  const folded = foldSubdomain(label);
  const reason = problemOfSubdomain(folded, platformLabel);
  if (reason !== null) throw new Fault('TUNNEL_SUBDOMAIN_INVALID', { subdomain: shownText(label), reason });
  const [first = '', below] = folded.split('.');
  if (below !== undefined && first !== '*') {
    throw badRequest(`label: '${folded}' needs no reservation: it belongs to the holder of '${below}'`);
  }
  return folded;
};

interface Taken {
  readonly row: NameRow;
  readonly isNew: boolean;
}

class Reserving {
  readonly trx: Trx;
  readonly #userId: string;
  readonly #context: ReserveContext;
  readonly #regions: Regions;
  readonly #limit: number | null;

  constructor(options: {
    readonly trx: Trx;
    readonly userId: string;
    readonly context: ReserveContext;
    readonly regions: Regions;
    readonly limit: number | null;
  }) {
    this.trx = options.trx;
    this.#userId = options.userId;
    this.#context = options.context;
    this.#regions = options.regions;
    this.#limit = options.limit;
  }

  get platformLabel(): string | null {
    return this.#context.platformLabel ?? null;
  }

  async subdomain(label: string): Promise<Taken> {
    if (label.startsWith('*.')) return this.#wildcard(label);
    return this.one({ kind: 'subdomain', regionId: '', label });
  }

  async one(key: NameKey): Promise<Taken> {
    const taken = await this.#take(key);
    if (taken === null) throw inUse(key);
    return taken;
  }

  /** Reserves the first free name of several. The rows of unavailable names stay locked until the transaction ends. */
  async anyOf(keys: readonly NameKey[]): Promise<Taken> {
    for (const key of keys.toSorted(inNameOrder)) {
      const taken = await this.#take(key);
      if (taken !== null) return taken;
    }
    throw inUse(keys.at(-1) as NameKey);
  }

  /** Reserves a wildcard. A wildcard belongs to the owner of the name above it, so the row of a previous owner is deleted. */
  async #wildcard(label: string): Promise<Taken> {
    const { clock, names } = this.#context;
    const key = decidingKey('subdomain', label, null);
    const owner = await readOwnership(
      this.trx,
      await lockName(this.trx, key),
      clock.now(),
      rulesFor('subdomain', names),
    );
    const wildcard: NameKey = { ...key, label };
    if (owner.kind === 'free' || (owner.kind === 'released' && owner.ownerId === this.#userId)) {
      throw badRequest(`label: '${label}' needs '${key.label}' to be yours: reserve that first`);
    }
    if (owner.ownerId !== this.#userId) throw inUse(wildcard);
    const row = await lockName(this.trx, wildcard);
    if (row !== undefined && row.user_id !== this.#userId)
      await this.trx.deleteFrom('names').where('id', '=', row.id).execute();
    return this.one(wildcard);
  }

  /** Reserves a name or port for the account. Returns null if another account owns the name or serves it with a tunnel. */
  async #take(key: NameKey): Promise<Taken | null> {
    const { clock, names } = this.#context;
    const rules = rulesFor(key.kind, names, key.label);
    const row = await lockNameKey(this.trx, key);
    const before = await readOwnership(this.trx, row, clock.now(), rules);
    const servedByOther = before.kind === 'free' && (await isServedByOther(this.trx, key, this.#userId));
    const event = { kind: 'reserve', by: this.#userId, servedByOther } as const;
    const [after, effects] = transitionName(before, event, clock.now(), rules);
    if (effects.some((effect) => effect.kind === 'refused' && effect.reason === 'withheld')) {
      throw new Fault('TUNNEL_SUBDOMAIN_INVALID', { subdomain: key.label, reason: 'it is reserved' });
    }
    if (effects.some(({ kind }) => kind === 'refused') || after.kind === 'free') return null;
    if (row !== undefined && before.kind === 'reserved') return { row, isNew: false };
    await this.#refuseOverPlan();
    if (before.kind === 'free') await this.#refuseOverShare(key);
    const anew = before.kind === 'free' ? { at: clock.now() } : null;
    const written =
      row === undefined
        ? await insertName(this.trx, key, after, clock.now())
        : await updateName(this.trx, row, after, anew);
    return written === null ? null : { row: written, isNew: true };
  }

  /**
   * Throws if the account has too many ports. A reserved port cannot be reclaimed, so an account above its share gets another port only
   * while enough ports are free for other accounts.
   */
  async #refuseOverShare(key: NameKey): Promise<void> {
    if (key.kind === 'subdomain' || key.kind === 'p2p') return;
    const { kind, regionId } = key;
    const range = this.#regions.range(kind, regionId);
    const limit = range.to - range.from + 1;
    const { held, free, hasIt } = await portsTaken(this.trx, key, range, this.#userId);
    const perHolder = portsPerAccount(limit, this.#context.accountShare);
    if (hasIt || refusalToKeep({ limit, free, held, perHolder }) === null) return;
    const reason = `this account has ${held} of the ${kind} ports ${range.from}-${range.to}, and the free ports are kept for other accounts`;
    throw new Fault('TUNNEL_PORT_LIMIT', { reason });
  }

  async #refuseOverPlan(): Promise<void> {
    const limit = this.#limit;
    if (limit === null) return;
    const { reserved } = await this.trx
      .selectFrom('names')
      .select((rows) => rows.fn.countAll<number>().as('reserved'))
      .where('user_id', '=', this.#userId)
      .where('state', '=', 'reserved')
      .executeTakeFirstOrThrow();
    if (reserved >= limit) throw new Fault('RESERVATION_LIMIT', { limit });
  }
}

const inUse = ({ kind, label }: NameKey): Fault =>
  kind === 'subdomain'
    ? new Fault('TUNNEL_SUBDOMAIN_IN_USE', { subdomain: label })
    : new Fault('TUNNEL_PORT_IN_USE', { port: label });
