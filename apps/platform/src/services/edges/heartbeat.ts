// Heartbeat of an edge: region, address and version of a running edge. After a restart of the edge, log entries of the previous run are
// closed.
import type { Heartbeat, HeartbeatAnswer } from '@tunnel/contract';
import { sql, type Transaction } from 'kysely';
import type { MasterKey } from '../../db/master-key.ts';
import type { Schema } from '../../db/schema.ts';
import { changeRange } from '../shared/edge-changes.ts';
import type { EdgeActor, ServiceContext } from '../shared/service-context.ts';
import { closeEntries, openAgain } from '../tunnels/log-entries.ts';

export interface HeartbeatContext extends Pick<ServiceContext, 'db' | 'clock' | 'logger'> {
  readonly masterKey: () => MasterKey;
}

export const heartbeat = async (
  { db, clock, logger, masterKey }: HeartbeatContext,
  { edgeId }: EdgeActor,
  told: Heartbeat,
): Promise<HeartbeatAnswer> => {
  const now = new Date(clock.now());
  const api_secret = masterKey().encrypt({ kind: 'edge-api-secret', id: edgeId }, told.api_secret);
  const counts = await db.transaction().execute(async (trx) => {
    const before = await trx
      .selectFrom('edges')
      .select(['run_id', 'last_heartbeat_at'])
      .where('id', '=', edgeId)
      // Locks the row, so that the heartbeat and the job that looks for silent edges run one after the other.
      .forNoKeyUpdate()
      .executeTakeFirstOrThrow();
    await writeHeartbeat(trx, edgeId, { ...told, api_secret }, now);
    const closed =
      before.run_id === null || before.run_id === told.run_id
        ? 0
        : await closeEntries(trx, { edgeId, at: before.last_heartbeat_at ?? now, notOfRun: told.run_id });
    return { closed, opened: await openAgain(trx, { edgeId, runId: told.run_id, now }) };
  });
  if (counts.closed > 0) logger.info({ edge_id: edgeId, tunnels: counts.closed }, 'an edge restarted');
  if (counts.opened > 0) logger.info({ edge_id: edgeId, tunnels: counts.opened }, 'an edge is back after a silence');
  const { latest } = await changeRange(db);
  return { edge_id: edgeId, last_change: latest };
};

/** Port ranges of the edge. Edges of an earlier version do not report port ranges; the columns become null, also after a downgrade. */
const rangesOf = ({ port_ranges }: Heartbeat) => ({
  tcp_from: port_ranges?.tcp[0] ?? null,
  tcp_to: port_ranges?.tcp[1] ?? null,
  udp_from: port_ranges?.udp[0] ?? null,
  udp_to: port_ranges?.udp[1] ?? null,
});

const writeHeartbeat = async (trx: Transaction<Schema>, edgeId: string, told: Heartbeat, now: Date): Promise<void> => {
  await trx
    .updateTable('edges')
    .set({
      region_id: told.region.id,
      region_name: told.region.name,
      location: told.region.location,
      api_url: told.api_url,
      api_secret: told.api_secret,
      version: told.version,
      ...told.reach,
      ...rangesOf(told),
      run_id: told.run_id,
      // The clocks of two platform processes may differ slightly; the stored time never goes back.
      last_heartbeat_at: sql<Date>`greatest(last_heartbeat_at, ${now}::timestamptz)`,
    })
    .where('id', '=', edgeId)
    .execute();
};
