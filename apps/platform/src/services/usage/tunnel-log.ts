// Tunnel log of an account: a page of entries, or a single entry.
import type { ShownProtocol, TunnelLogEntry, TunnelState } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Selectable } from 'kysely';
import { isUuid, type TunnelLogTable } from '../../db/schema.ts';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';

export interface LogPage {
  readonly limit: number;
  readonly offset: number;
  /** Protocol of the listed tunnels. Without a value, tunnels of every protocol are listed. */
  readonly protocol?: ShownProtocol | undefined;
  /** State of the listed tunnels. Without a value, open and ended tunnels are listed. */
  readonly state?: TunnelState | undefined;
}

/** Lists a page of the account's tunnel log, newest first. Entries with equal times are ordered by id, so that pages do not overlap. */
export const listTunnels = async (
  { db }: Pick<ServiceContext, 'db'>,
  { userId }: UserActor,
  { limit, offset, protocol, state }: LogPage,
): Promise<TunnelLogEntry[]> => {
  const rows = await db
    .selectFrom('tunnel_log')
    .select(LOG_COLUMNS)
    // Rows before the page are skipped by an index-only scan, without reading the table, unless a state is requested.
    .where('id', 'in', (page) =>
      page
        .selectFrom('tunnel_log')
        .select('id')
        .where('user_id', '=', userId)
        .$if(protocol !== undefined, (some) => some.where('protocol', '=', protocol ?? ''))
        .$if(state !== undefined, (some) => some.where('unregistered_at', state === 'active' ? 'is' : 'is not', null))
        .orderBy('registered_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .offset(offset),
    )
    .orderBy('registered_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return rows.map(presentLogEntry);
};

/** Finds an entry of the tunnel log, by the id of the entry or of the tunnel. Entries of other accounts are reported as unknown. */
export const findTunnel = async (
  { db }: Pick<ServiceContext, 'db'>,
  { userId }: UserActor,
  id: string,
): Promise<TunnelLogEntry> => {
  if (!isTunnelId(id)) throw new Fault('TUNNEL_UNKNOWN');
  const row = await db
    .selectFrom('tunnel_log')
    .select(LOG_COLUMNS)
    .where('user_id', '=', userId)
    .where((is) => (isUuid(id) ? is.or([is('id', '=', id), is('tunnel_id', '=', id)]) : is('tunnel_id', '=', id)))
    .executeTakeFirst();
  if (row === undefined) throw new Fault('TUNNEL_UNKNOWN');
  return presentLogEntry(row);
};

const LOG_COLUMNS = [
  'id',
  'tunnel_id',
  'protocol',
  'label',
  'name',
  'public_url',
  'client_name',
  'registered_at',
  'unregistered_at',
  'region_id',
  'request_count',
  'bytes_proxied',
] as const;

export type LogRow = Pick<Selectable<TunnelLogTable>, (typeof LOG_COLUMNS)[number]>;

/** Converts a row of the tunnel log to the form of the API. */
const presentLogEntry = ({ name, public_url, client_name, ...row }: LogRow): TunnelLogEntry => ({
  ...row,
  // The schema of the edge link allows only these protocols, so the cast is safe.
  protocol: row.protocol as ShownProtocol,
  ...(name === '' ? {} : { name }),
  ...(public_url === null ? {} : { public_url }),
  ...(client_name === null ? {} : { client_name }),
  registered_at: row.registered_at.toISOString(),
  unregistered_at: row.unregistered_at?.toISOString() ?? null,
});

const TUNNEL_ID = /^[!-~]{1,100}$/;

/**
 * Returns true if the text can be a tunnel id. Edges create ids of printable ASCII characters. Other texts cannot be an id and never
 * reach a query, because PostgreSQL would reject some of them with an error.
 */
const isTunnelId = (text: string): boolean => TUNNEL_ID.test(text);
