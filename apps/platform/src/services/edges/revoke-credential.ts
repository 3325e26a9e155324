// Shuts an edge out: its next call is refused, and its stream of changes ends.
import { Fault } from '@tunnel/errors';
import { sql } from 'kysely';
import { actorName } from '../audit/actor-name.ts';
import { writeAudit } from '../audit/write-audit.ts';
import { isUuid } from '../is-uuid.ts';
import type { OperatorContext } from '../operator-context.ts';
import type { OperatorActor } from '../service-context.ts';
import { CHANGES_CHANNEL } from './announce-change.ts';

/** `edge`: its id, or the name it has while it is not revoked. */
export const revokeCredential = async (
  { db, clock }: OperatorContext,
  actor: OperatorActor,
  edge: string,
): Promise<{ edgeId: string; name: string }> =>
  db.transaction().execute(async (trx) => {
    const row = await trx
      .updateTable('edges')
      .set({ revoked_at: new Date(clock.now()), api_secret: '' })
      .where(isUuid(edge) ? 'id' : 'name', '=', edge)
      .where('revoked_at', 'is', null)
      .returning(['id', 'name'])
      .executeTakeFirst();
    if (row === undefined) throw new Fault('EDGE_UNKNOWN', { name: edge });
    await writeAudit(trx, {
      actor: actorName(actor),
      action: 'edge.revoked',
      details: { edge_id: row.id, name: row.name },
    });
    await sql`select pg_notify(${CHANGES_CHANNEL}, '')`.execute(trx);
    return { edgeId: row.id, name: row.name };
  });
