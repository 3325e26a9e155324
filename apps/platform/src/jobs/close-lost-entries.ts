// Closes what edges have left open that nobody hears any more: at their last heartbeat, and within 60 s of it.
import { sql } from 'kysely';
import { closeEntries } from '../services/tunnels/log-entries.ts';
import { type Job, type JobContext, withJobLock } from './jobs.ts';

/**
 * An edge that was not heard for so long is taken for dead; heartbeats come every 5 s. With the job's pace: within 60 s.
 * @limit operator: Edge, silence before the edge counts as dead | the platform closes the edge's tunnels
 */
const EDGE_SILENT_MS = 45_000;
/** How often tunnels of edges that are gone are looked for. */
const CLOSE_LOST_EVERY_MS = 10_000;

const LOCK = 1;

export const closeLostEntries: Job = {
  name: 'close lost entries',
  everyMs: CLOSE_LOST_EVERY_MS,
  // When the platform itself was away, edges get the time to be heard again before they are missed.
  firstAfterMs: EDGE_SILENT_MS,
  run: async (context) => {
    const closed = await withJobLock(context.db, LOCK, async (trx) => {
      const silentSince = new Date(context.clock.now() - EDGE_SILENT_MS);
      // One that is saying that it lives at this very moment is skipped.
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

/** All that a silent edge has; of one that lives, what an earlier run has left behind. */
const lostOf = ({ id, run_id, last_heartbeat_at, created_at, silent }: LostEdge) =>
  silent || run_id === null
    ? { edgeId: id, at: last_heartbeat_at ?? created_at }
    : { edgeId: id, at: created_at, notOfRun: run_id };

const report = ({ logger }: JobContext, closed: number): void => {
  if (closed > 0) logger.warn({ tunnels: closed }, 'marked tunnels as closed because their edge stopped responding');
};
