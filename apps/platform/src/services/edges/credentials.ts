// Credentials of edges: create, verify, list and revoke.
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

/** Creates a random credential for an edge: the prefix and 43 characters, which are 256 bits in base64url. */
export const newEdgeCredential = (): Secret => new Secret(`${PREFIX}${randomToken(32)}`);

/** Hash of a credential, which is the only stored part. A salt or a slow hash is unnecessary, because 256 random bits cannot be guessed. */
const hashOfCredential = (credential: Secret): string => sha256Hex(credential.reveal());

const NAME = /^[A-Za-z0-9._-]{1,100}$/;

/** Registers an edge and creates its credential. Only the result contains the credential; the database has a hash. */
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
  /** Region of the edge; null before the first heartbeat. */
  readonly regionId: string | null;
  readonly version: string;
  readonly lastHeartbeatAt: Date | null;
}

/** Lists all edges, including revoked edges, newest first. */
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
 * Revokes the credential of an edge. The edge's next call is rejected, and its change stream ends. `edge` is the id, or the name of an
 * edge that is not revoked.
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

/** Finds the edge of a credential. Returns null if the credential is unknown or revoked. */
export const verifyCredential = async (db: Db, credential: Secret): Promise<EdgeActor | null> => {
  const hash = hashOfCredential(credential);
  const row = await db
    .selectFrom('edges')
    .select(['id', 'credential_hash'])
    .where('credential_hash', '=', hash)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  // The timing of the query may reveal a few characters of the hash, from which no credential can be derived.
  if (row === undefined || !equalInConstantTime(row.credential_hash, hash)) return null;
  return { kind: 'edge', edgeId: row.id };
};

/**
 * Encrypts API secrets of edges that earlier versions stored unencrypted. An edge that never reconnects would not send its secret again,
 * so its row must be encrypted here.
 */
export const encryptApiSecrets = async (db: Db, masterKey: MasterKey): Promise<void> => {
  const rows = await db.selectFrom('edges').select(['id', 'api_secret']).where('api_secret', '<>', '').execute();
  for (const { id, api_secret: text } of rows.filter((row) => !isEncrypted(row.api_secret))) {
    const api_secret = masterKey.encrypt({ kind: 'edge-api-secret', id }, text);
    await db.updateTable('edges').set({ api_secret }).where('id', '=', id).where('api_secret', '=', text).execute();
  }
};

/** Returns the revoked edges among the given edges. */
export const revokedAmong = async (db: Db, edgeIds: readonly string[]): Promise<ReadonlySet<string>> => {
  const rows = await db
    .selectFrom('edges')
    .select('id')
    .where(sql<boolean>`id = any(${edgeIds}::uuid[])`)
    .where('revoked_at', 'is not', null)
    .execute();
  return new Set(rows.map((row) => row.id));
};

/** Returns the regions of the given edges. An edge without a heartbeat is missing in the result. */
export const loadEdgeRegions = async (db: Db, edgeIds: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  const rows = await db
    .selectFrom('edges')
    .select(['id', 'region_id'])
    .where(sql<boolean>`id = any(${edgeIds}::uuid[])`)
    .execute();
  return new Map(rows.flatMap(({ id, region_id }) => (region_id === null ? [] : [[id, region_id]])));
};

/**
 * Name of the edge inside a stack, which authenticates with a credential created by the stack. Different for every data directory,
 * because several stacks can share a database, with a separate edge for each stack.
 */
export const localEdgeName = (dataDir: string): string =>
  `local-${sha256Hex(`${hostname()}:${resolve(dataDir)}`).slice(0, 8)}`;

/**
 * Creates or updates the row of the stack's edge and returns its id. The row stays the same across restarts, so that a new run is
 * recognized as the successor of the previous run.
 */
export const ensureLocalEdge = async (db: Db, name: string, credential: Secret): Promise<string> => {
  const credential_hash = hashOfCredential(credential);
  return db.transaction().execute(async (trx) => {
    // A revoked edge may have used the same credential. Its row is kept, because records of the edge refer to it.
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
