// The credentials of edges: who is let in, with what, and who was shut out.
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { Fault } from '@tunnel/errors';
import { equalInConstantTime, randomToken, Secret, sha256Hex } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { isEncrypted, type MasterKey } from '../../db/master-key.ts';
import { isUuid } from '../../db/schema.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import { CHANGES_CHANNEL } from '../shared/edge-changes.ts';
import type { EdgeActor, OperatorActor, OperatorContext } from '../shared/service-context.ts';

const PREFIX = 'tne_';

/** The credential of an edge: what it looks like, and what is kept of it. 256 bits in base64url: 43 characters. */
export const newEdgeCredential = (): Secret => new Secret(`${PREFIX}${randomToken(32)}`);

/** All that is stored. It needs no salt and no slow hash: nobody guesses 256 random bits. */
const hashOfCredential = (credential: Secret): string => sha256Hex(credential.reveal());

const NAME = /^[A-Za-z0-9._-]{1,100}$/;

/** Lets one more edge in. The credential is in the answer and nowhere else. */
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

export interface ListedEdge {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly revokedAt: Date | null;
  /** null: it was never heard. */
  readonly regionId: string | null;
  readonly version: string;
  readonly lastHeartbeatAt: Date | null;
}

/** The edges that were ever let in, newest first. */
export const listCredentials = async ({ db }: Pick<OperatorContext, 'db'>): Promise<ListedEdge[]> => {
  const rows = await db
    .selectFrom('edges')
    .select(['id', 'name', 'created_at', 'revoked_at', 'region_id', 'version', 'last_heartbeat_at'])
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
    regionId: row.region_id,
    version: row.version,
    lastHeartbeatAt: row.last_heartbeat_at,
  }));
};

/**
 * Shuts an edge out: its next call is refused, and its stream of changes ends. `edge`: its id, or the name it has while it is
 * not revoked.
 */
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

/** Which edge a credential belongs to. null: to none, or it was revoked. */
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

/** What lets us in at edges was kept in clear once; an edge that is not heard again never tells it anew. */
export const encryptApiSecrets = async (db: Db, masterKey: MasterKey): Promise<void> => {
  const rows = await db.selectFrom('edges').select(['id', 'api_secret']).where('api_secret', '<>', '').execute();
  for (const { id, api_secret: text } of rows.filter((row) => !isEncrypted(row.api_secret))) {
    const api_secret = masterKey.encrypt({ kind: 'edge-api-secret', id }, text);
    await db.updateTable('edges').set({ api_secret }).where('id', '=', id).where('api_secret', '=', text).execute();
  }
};

/** Which of these edges were shut out. */
export const revokedAmong = async (db: Db, edgeIds: readonly string[]): Promise<ReadonlySet<string>> => {
  const rows = await db
    .selectFrom('edges')
    .select('id')
    .where(sql<boolean>`id = any(${edgeIds}::uuid[])`)
    .where('revoked_at', 'is not', null)
    .execute();
  return new Set(rows.map((row) => row.id));
};

/** Where these edges said they are; one that was never heard is missing. */
export const loadEdgeRegions = async (db: Db, edgeIds: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  const rows = await db
    .selectFrom('edges')
    .select(['id', 'region_id'])
    .where(sql<boolean>`id = any(${edgeIds}::uuid[])`)
    .execute();
  return new Map(rows.flatMap(({ id, region_id }) => (region_id === null ? [] : [[id, region_id]])));
};

/**
 * The stack's own edge, which shows a credential that the stack made for itself. One for each data directory: several
 * stacks may share a database, each with an edge of its own.
 */
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
