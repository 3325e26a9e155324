// The stack's own edge, which shows a credential that the process made for itself.
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { type Secret, sha256Hex } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { hashOfCredential } from './edge-credential.ts';

/** One for each data directory: several stacks may share a database, each with an edge of its own. */
export const localEdgeName = (dataDir: string): string =>
  `local-${sha256Hex(`${hostname()}:${resolve(dataDir)}`).slice(0, 8)}`;

/** Its id. The row stays the same over restarts, so that a new run is seen to follow the last one. */
export const ensureLocalEdge = async (db: Db, name: string, credential: Secret): Promise<string> => {
  const credential_hash = hashOfCredential(credential);
  return db.transaction().execute(async (trx) => {
    // One that was revoked may have shown the same credential; it keeps its row, for what it did is told by it.
    await trx
      .updateTable('edges')
      .set({ credential_hash: sql<string>`'replaced:' || id` })
      .where('credential_hash', '=', credential_hash)
      .where('revoked_at', 'is not', null)
      .execute();
    const { id } = await trx
      .insertInto('edges')
      .values({ name, credential_hash })
      .onConflict((conflict) =>
        conflict.column('name').where('revoked_at', 'is', null).doUpdateSet({ credential_hash }),
      )
      .returning('id')
      .executeTakeFirstOrThrow();
    return id;
  });
};
