// Regions of the edges, with their port ranges and the public addresses of names and ports.
import { Fault } from '@tunnel/errors';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { Schema } from '../../db/schema.ts';
import { LIMITS } from '../../limits.ts';
import type { NameKey, ReservedKind } from '../shared/edge-changes.ts';
import { textOfKey } from './name-key.ts';

/** Number of random free ports tried for a reservation without a port, because concurrent requests may take the same ports. */
const FREE_PORT_TRIES = 20;

type PortKind = Exclude<ReservedKind, 'subdomain'>;

export interface PortRange {
  readonly from: number;
  readonly to: number;
}

interface RegionRow {
  readonly region_id: string;
  readonly http_url: string;
  readonly tcp_from: number | null;
  readonly tcp_to: number | null;
  readonly udp_from: number | null;
  readonly udp_to: number | null;
}

export class Regions {
  readonly #rows: ReadonlyMap<string, RegionRow>;

  constructor(rows: readonly RegionRow[]) {
    this.#rows = new Map(rows.map((row) => [row.region_id, row]));
  }

  /**
   * Returns the requested region, or the only region if no region is requested. Throws if the region is unknown, or if none is requested
   * and the choice is ambiguous.
   */
  choose(wanted: string | undefined): string {
    const known = [...this.#rows.keys()];
    const list = known.join(', ') || 'none yet';
    if (wanted !== undefined && !this.#rows.has(wanted)) {
      throw badRequest(`region_id: unknown region ${JSON.stringify(wanted)} (available: ${list})`);
    }
    const chosen = wanted ?? (known.length === 1 ? known[0] : undefined);
    if (chosen !== undefined) return chosen;
    throw badRequest(
      known.length === 0
        ? 'region_id: no edge has connected yet, so no ports are available'
        : `region_id: is required because there are several regions (${list})`,
    );
  }

  range(kind: PortKind, regionId: string): PortRange {
    const row = this.#rows.get(regionId);
    const from = row?.[`${kind}_from`] ?? null;
    const to = row?.[`${kind}_to`] ?? null;
    if (from !== null && to !== null) return { from, to };
    throw badRequest(`kind: the edge of region ${JSON.stringify(regionId)} has not reported its port ranges`);
  }

  /** Public address of a name or port. Empty if no edge has reported its address. */
  addressOf({ kind, regionId, label }: NameKey): string {
    const row = kind === 'subdomain' ? this.#rows.values().next().value : this.#rows.get(regionId);
    if (row === undefined || !URL.canParse(row.http_url)) return '';
    const { protocol, host, hostname } = new URL(row.http_url);
    return kind === 'subdomain' ? `${protocol}//${label}.${host}` : `${kind}://${hostname}:${label}`;
  }
}

const badRequest = (reason: string): Fault => new Fault('API_BAD_REQUEST', { reason });

/** Reads the regions, each from its edge with the latest heartbeat. Regions with a recent heartbeat come first. */
export const readRegions = async (db: Db | Transaction<Schema>, now: number): Promise<Regions> => {
  const heardSince = new Date(now - LIMITS.EDGE_RECENT_MS);
  const { rows } = await sql<RegionRow>`
    select * from (
      select distinct on (region_id)
        region_id, http_url, tcp_from, tcp_to, udp_from, udp_to, last_heartbeat_at
      from edges where revoked_at is null and region_id is not null
      order by region_id, last_heartbeat_at desc
    ) as regions order by last_heartbeat_at < ${heardSince}, region_id
  `.execute(db);
  return new Regions(rows);
};

/**
 * Returns random ports that no account owns and no tunnel serves. The order is random, so that concurrent requests rarely choose the same
 * port.
 */
export const freePorts = async (
  trx: Transaction<Schema>,
  { kind, regionId }: { readonly kind: PortKind; readonly regionId: string },
  { from, to }: PortRange,
): Promise<string[]> => {
  const { rows } = await sql<{ label: string }>`
    select port::text as label from generate_series(${from}::int, ${to}::int) as port
    where not exists (
      select from names where kind = ${kind} and region_id = ${regionId} and label = port::text
    ) and not exists (
      select from tunnel_log
      where endpoint = ${textOfKey({ kind, regionId, label: '' })} || port::text and unregistered_at is null
    )
    order by random() limit ${FREE_PORT_TRIES}
  `.execute(trx);
  return rows.map(({ label }) => label);
};

export interface PortsTaken {
  /**
   * Number of ports that the account occupies in the range: reserved, released but still blocked for other accounts, or served by its
   * tunnels.
   */
  readonly held: number;
  /** Number of free ports in the range: no account has reserved or released them, and no tunnel serves them. */
  readonly free: number;
  /** True if a tunnel of the account serves the requested port. */
  readonly hasIt: boolean;
}

export const portsTaken = async (
  trx: Transaction<Schema>,
  { kind, regionId, label }: NameKey,
  { from, to }: PortRange,
  accountId: string,
): Promise<PortsTaken> => {
  const prefix = textOfKey({ kind, regionId, label: '' });
  const { rows } = await sql<{ held: number; taken: number; has_it: boolean }>`
    with taken as (
      select label, user_id from names where kind = ${kind} and region_id = ${regionId}
      union
      select substr(endpoint, length(${prefix}) + 1), user_id from tunnel_log
      where starts_with(endpoint, ${prefix}) and unregistered_at is null
    )
    select count(distinct label) filter (where user_id = ${accountId}) as held, count(distinct label) as taken,
      coalesce(bool_or(label = ${label} and user_id = ${accountId}), false) as has_it
    from taken where label::int between ${from} and ${to}
  `.execute(trx);
  const { held = 0, taken = 0, has_it = false } = rows[0] ?? {};
  return { held, free: to - from + 1 - taken, hasIt: has_it };
};

/** Returns true if a tunnel of another account serves the name, or a name below it, without owning the name. */
export const isServedByOther = async (trx: Transaction<Schema>, key: NameKey, accountId: string): Promise<boolean> => {
  const { rows } = await sql<{ served: boolean }>`
    select exists (
      select from tunnel_log
      where endpoint = ${textOfKey(key)} and unregistered_at is null and user_id <> ${accountId}
    ) as served
  `.execute(trx);
  return rows[0]?.served === true;
};
