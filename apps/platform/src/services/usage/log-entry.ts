// One row of the tunnel log as its owner sees it.
import type { ShownProtocol, TunnelLogEntry } from '@tunnel/contract';
import type { Selectable } from 'kysely';
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

export const presentLogEntry = (row: LogRow): TunnelLogEntry => ({
  ...row,
  // Written by the edge link, whose schema knows these alone.
  protocol: row.protocol as ShownProtocol,
  registered_at: row.registered_at.toISOString(),
  unregistered_at: row.unregistered_at?.toISOString() ?? null,
});
