// One entry of the tunnel log, by its id or by the tunnel's; somebody else's does not exist.
import type { TunnelLogEntry } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { isTunnelId } from '../is-tunnel-id.ts';
import { isUuid } from '../is-uuid.ts';
import type { ServiceContext, UserActor } from '../service-context.ts';
import { LOG_COLUMNS, presentLogEntry } from './log-entry.ts';

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
