// Closes the tunnel entries left open by dead edges and by earlier runs of an edge. An entry is closed as of the edge's last heartbeat,
// within 60 s after it.
import { sql } from 'kysely';
import { closeEntries } from '../services/tunnels/log-entries.ts';
import { type Job, type JobContext, withJobLock } from './jobs.ts';

/**
 * Time without a heartbeat after which an edge counts as dead. Heartbeats come every 5 s. With the interval of the job, tunnels are
 * closed within 60 s.
 * @limit operator: Edge, silence before the edge counts as dead | the platform closes the edge's tunnels
 */
const EDGE_SILENT_MS = 45_000;
/** Interval between searches for tunnels of dead edges. */
const CLOSE_LOST_EVERY_MS = 10_000;

const LOCK = 1;

export const closeLostEntries: Job = {
  name: 'close lost entries',
  everyMs: CLOSE_LOST_EVERY_MS,
  // After an outage of the platform, edges get time to send a heartbeat before they count as dead.
  firstAfterMs: EDGE_SILENT_MS,
  run: async (context) => {
    const closed = await withJobLock(context.db, LOCK, async (trx) => {
      const silentSince = new Date(context.clock.now() - EDGE_SILENT_MS);
      // If an edge's heartbeat is being written right now, the row is locked and therefore skipped.
      const { rows: edges } = await sql<LostEdge>`
        select id, run_id, last_heartbeat_at, created_at, last_heartbeat_at is null or last_heartbeat_at < ${silentSince} as silent
        from edges
        where exists (
          select from tunnel_log
          where edge_id = edges.id and unregistered_at is null
            and (last_heartbeat_at is null or last_heartbeat_at < ${silentSince} or tunnel_log.run_id <> edges.run_id)
        )
        order by id for no key update skip locked
      `.execute(trx);
      let count = 0;
      for (const edge of edges) count += await closeEntries(trx, lostOf(edge));
      return count;
    });
    report(context, closed ?? 0);
  },
};

interface LostEdge {
  readonly id: string;
  readonly run_id: string | null;
  readonly last_heartbeat_at: Date | null;
  readonly created_at: Date;
  readonly silent: boolean;
}

/** Selects the entries to close: all entries of a silent edge, or the entries of earlier runs of a live edge. */
const lostOf = ({ id, run_id, last_heartbeat_at, created_at, silent }: LostEdge) =>
  silent || run_id === null
    ? { edgeId: id, at: last_heartbeat_at ?? created_at }
    : { edgeId: id, at: created_at, notOfRun: run_id };

const report = ({ logger }: JobContext, closed: number): void => {
  if (closed > 0) logger.warn({ tunnels: closed }, 'marked tunnels as closed because their edge stopped responding');
};
