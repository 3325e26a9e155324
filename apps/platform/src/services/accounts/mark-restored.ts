// After a restore of the database to an earlier time: makes every edge ask again for what it knows, records the restore in the audit log,
// and ends all sessions if the operator wants that. Uses only columns of the earliest versions, because pending migrations run later.
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import type { OperatorActor } from '../shared/service-context.ts';

/**
 * Distance between the last change before the restore and the first change after it. An edge may know changes that the restore has undone;
 * their numbers must not be used again, or the edge would take new changes for known changes.
 */
const SKIPPED_CHANGES = 1_000_000;

export interface RestoredFacts {
  /** Time of the restored state, in milliseconds. */
  readonly at: number;
  readonly now: number;
  /** Ends all sessions of the dashboard and of apps: their tokens may have been revoked after the restored time. */
  readonly revokeSessions: boolean;
}

/** Marks a database as restored. Run before any server starts on it. */
export const markRestored = async (
  db: Db,
  actor: OperatorActor,
  { at, now, revokeSessions }: RestoredFacts,
): Promise<void> => {
  await db.transaction().execute(async (trx) => {
    if (revokeSessions) {
      await sql`update users set epoch = epoch + 1`.execute(trx);
      await sql`update refresh_families set revoked_at = ${new Date(now)} where revoked_at is null`.execute(trx);
    }
    await writeAudit(trx, {
      actor: actorName(actor),
      action: 'database.restored',
      details: { to: new Date(at).toISOString(), sessions_revoked: revokeSessions },
    });
    await sql`
      select setval(pg_get_serial_sequence('edge_changes', 'id'), coalesce(max(id), 0) + ${SKIPPED_CHANGES}::bigint)
      from edge_changes`.execute(trx);
    await sql`insert into edge_changes (kind) values ('forget')`.execute(trx);
  });
};
