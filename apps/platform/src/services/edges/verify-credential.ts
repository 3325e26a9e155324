// Which edge a credential belongs to.
import { equalInConstantTime, type Secret } from '@tunnel/runtime';
import type { Db } from '../../db/database.ts';
import type { EdgeActor } from '../service-context.ts';
import { hashOfCredential } from './edge-credential.ts';

/** null: to none, or it was revoked. */
export const verifyCredential = async (db: Db, credential: Secret): Promise<EdgeActor | null> => {
  const hash = hashOfCredential(credential);
  const row = await db
    .selectFrom('edges')
    .select(['id', 'credential_hash'])
    .where('credential_hash', '=', hash)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  // The search itself tells at most a few characters of the hash, which lead to no credential.
  if (row === undefined || !equalInConstantTime(row.credential_hash, hash)) return null;
  return { kind: 'edge', edgeId: row.id };
};
