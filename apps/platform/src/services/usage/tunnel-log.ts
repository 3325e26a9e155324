// The log of an account's tunnels: a page of it, and one entry.
import type { ShownProtocol, TunnelLogEntry, TunnelState } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Selectable } from 'kysely';
import { isUuid, type TunnelLogTable } from '../../db/schema.ts';
import type { ServiceContext, UserActor } from '../shared/service-context.ts';

export interface LogPage {
  readonly limit: number;
  readonly offset: number;
  /** Absent: of every protocol. */
  readonly protocol?: ShownProtocol | undefined;
  /** Absent: living and ended ones. */
  readonly state?: TunnelState | undefined;
}

/** The log of an account's tunnels, newest first; equal times are told apart by id, so that pages do not overlap. */
export const listTunnels = async (
  { db }: Pick<ServiceContext, 'db'>,
  { userId }: UserActor,
  { limit, offset, protocol, state }: LogPage,
): Promise<TunnelLogEntry[]> => {
  const rows = await db
    .selectFrom('tunnel_log')
    .select(LOG_COLUMNS)
    // Rows before the page are passed over in the index alone, without a look at the table, unless a state is asked for.
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

/** One entry of the tunnel log, by its id or by the tunnel's; somebody else's does not exist. */
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

/** One row of the tunnel log as its owner sees it. */
const presentLogEntry = ({ name, public_url, client_name, ...row }: LogRow): TunnelLogEntry => ({
  ...row,
  // Written by the edge link, whose schema knows these alone.
  protocol: row.protocol as ShownProtocol,
  ...(name === '' ? {} : { name }),
  ...(public_url === null ? {} : { public_url }),
  ...(client_name === null ? {} : { client_name }),
  registered_at: row.registered_at.toISOString(),
  unregistered_at: row.unregistered_at?.toISOString() ?? null,
});

const TUNNEL_ID = /^[!-~]{1,100}$/;

/**
 * Ids of tunnels are made by the edges, of letters, digits and signs of ASCII. Anything else is an id of nothing, and never
 * reaches a query, which would refuse some of it.
 */
const isTunnelId = (text: string): boolean => TUNNEL_ID.test(text);
