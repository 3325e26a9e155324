// One row of the tunnel log as its owner sees it.
import type { ShownProtocol, TunnelLogEntry } from '@tunnel/contract';
import { type Selectable, sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import type { TunnelLogTable } from '../../db/schema.ts';

export const LOG_COLUMNS = [
  'id',
  'tunnel_id',
  'protocol',
  'label',
  'registered_at',
  'unregistered_at',
  'region_id',
  'request_count',
  'bytes_proxied',
] as const;

export type LogRow = Pick<Selectable<TunnelLogTable>, (typeof LOG_COLUMNS)[number]>;

/** Those that were let in a moment ago, and whose edge has not told where they are reached: not there for their owner yet. */
export const withoutPlace = (db: Db, userId: string) =>
  db
    .selectFrom('tunnel_log')
    .select('id')
    .where('user_id', '=', userId)
    .where('unregistered_at', 'is', null)
    // Written out, so that the index of just these is found.
    .where('label', '=', sql.lit(''));

export const presentLogEntry = (row: LogRow): TunnelLogEntry => ({
  ...row,
  // Written by the edge link, whose schema knows these alone.
  protocol: row.protocol as ShownProtocol,
  registered_at: row.registered_at.toISOString(),
  unregistered_at: row.unregistered_at?.toISOString() ?? null,
});
