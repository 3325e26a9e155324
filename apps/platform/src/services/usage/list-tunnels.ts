// The log of an account's tunnels, newest first; equal times are told apart by id, so that pages do not overlap.
import type { ShownProtocol, TunnelLogEntry, TunnelState } from '@tunnel/contract';
import type { ServiceContext, UserActor } from '../service-context.ts';
import { LOG_COLUMNS, presentLogEntry } from './log-entry.ts';

export interface LogPage {
  readonly limit: number;
  readonly offset: number;
  /** Absent: of every protocol. */
  readonly protocol?: ShownProtocol | undefined;
  /** Absent: living and ended ones. */
  readonly state?: TunnelState | undefined;
}

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
