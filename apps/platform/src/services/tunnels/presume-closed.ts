// Entries of the log whose edge can no longer tell of their end: closed at its last sign of life, and opened again when it
// turns out to live. Rows are locked in the order of their tunnel ids, as everywhere, so that nobody waits in a circle.
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';

export interface LostEntries {
  readonly edgeId: string;
  /** When the edge was last heard. An entry that was opened later ends as it began. */
  readonly at: Date;
  /** Only entries of other runs than this one. */
  readonly notOfRun?: string;
}

/** How many were closed. */
export const closeEntries = async (
  trx: Transaction<Schema>,
  { edgeId, at, notOfRun }: LostEntries,
): Promise<number> => {
  const ofRuns = notOfRun === undefined ? sql`true` : sql`run_id <> ${notOfRun}`;
  const { numAffectedRows } = await sql`
    with lost as (
      select id from tunnel_log
      where edge_id = ${edgeId} and unregistered_at is null and ${ofRuns}
      order by tunnel_id for no key update
    )
    update tunnel_log set unregistered_at = greatest(registered_at, ${at}::timestamptz), presumed_closed = true
    from lost where tunnel_log.id = lost.id
  `.execute(trx);
  return Number(numAffectedRows ?? 0);
};

/** Those of a run that is heard again: they were closed too early. */
export const openAgain = async (trx: Transaction<Schema>, edgeId: string, runId: string): Promise<number> => {
  const { numAffectedRows } = await sql`
    with living as (
      select id from tunnel_log
      where edge_id = ${edgeId} and run_id = ${runId} and presumed_closed
      order by tunnel_id for no key update
    )
    update tunnel_log set unregistered_at = null, presumed_closed = false
    from living where tunnel_log.id = living.id
  `.execute(trx);
  return Number(numAffectedRows ?? 0);
};
