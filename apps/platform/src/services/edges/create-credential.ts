// Lets one more edge in. The credential is in the answer and nowhere else.
import { Fault } from '@tunnel/errors';
import type { Secret } from '@tunnel/runtime';
import { actorName } from '../audit/actor-name.ts';
import { writeAudit } from '../audit/write-audit.ts';
import type { OperatorContext } from '../operator-context.ts';
import type { OperatorActor } from '../service-context.ts';
import { hashOfCredential, newEdgeCredential } from './edge-credential.ts';

const NAME = /^[A-Za-z0-9._-]{1,100}$/;

export const createCredential = async (
  { db, clock }: OperatorContext,
  actor: OperatorActor,
  name: string,
): Promise<{ edgeId: string; credential: Secret }> => {
  if (!NAME.test(name)) throw new Fault('EDGE_NAME_INVALID');
  const credential = newEdgeCredential();
  return db.transaction().execute(async (trx) => {
    const row = await trx
      .insertInto('edges')
      .values({ name, credential_hash: hashOfCredential(credential), created_at: new Date(clock.now()) })
      .onConflict((conflict) => conflict.column('name').where('revoked_at', 'is', null).doNothing())
      .returning('id')
      .executeTakeFirst();
    if (row === undefined) throw new Fault('EDGE_NAME_TAKEN', { name });
    const { id: edgeId } = row;
    await writeAudit(trx, { actor: actorName(actor), action: 'edge.created', details: { edge_id: edgeId, name } });
    return { edgeId, credential };
  });
};
