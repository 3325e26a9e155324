// Signing keys for access tokens, as stored in the database. Private keys are encrypted with the master key. One key signs; replaced keys
// verify tokens for another hour and have no private key any more.
import { randomId } from '@tunnel/runtime';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import { isEncrypted, type MasterKey, type MasterKeySource, openMasterKey } from '../../db/master-key.ts';
import type { Schema } from '../../db/schema.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import type { OperatorActor, OperatorContext } from '../shared/service-context.ts';

/** How long a replaced key verifies tokens: four times the lifetime of an access token. */
export const SIGNING_KEY_RETIRED_MS = 60 * 60_000;

/**
 * PostgreSQL advisory lock for changes of signing keys: the ASCII letters 'sk' and the number 1. The prefix keeps the lock ids of
 * different subjects apart.
 */
const SIGNING_KEYS_LOCK = 0x736b_0001;

export interface SigningKeyRow {
  readonly kid: string;
  readonly public_key: Record<string, unknown>;
  /** Encrypted private key; null if the key was replaced. */
  readonly private_key: string | null;
  readonly created_at: Date;
  readonly retired_at: Date | null;
}

/** Returns the keys that sign or verify at the given time. The key that signs is first. */
export const signingKeyRows = (db: Db | Transaction<Schema>, now: number): Promise<SigningKeyRow[]> =>
  db
    .selectFrom('signing_keys')
    .select(['kid', 'public_key', 'private_key', 'created_at', 'retired_at'])
    .where((row) => row.or([row('retired_at', 'is', null), row('retired_at', '>', verifiesSince(now))]))
    .orderBy('retired_at', (order) => order.desc().nullsFirst())
    .orderBy('created_at', 'desc')
    .orderBy('kid')
    .execute();

const verifiesSince = (now: number): Date => new Date(now - SIGNING_KEY_RETIRED_MS);

/** Decrypts the private key of a row. Throws a fault that names the file if the master key is not the right key. */
export const openPrivateKey = (masterKey: MasterKey, { kid, private_key }: SigningKeyRow): JWK =>
  JSON.parse(masterKey.decrypt(purposeOf(kid), private_key ?? '')) as JWK;

const purposeOf = (kid: string) => ({ kind: 'signing-key', id: kid }) as const;

/** Creates a signing key if no key signs. Two processes that start at the same time create only one key. */
export const makeFirstSigningKey = (db: Db, masterKey: MasterKey, now: number): Promise<void> =>
  withKeysLocked(db, async (trx) => {
    const rows = await signingKeyRows(trx, now);
    if (rows.every(({ retired_at }) => retired_at !== null)) await insertKey(trx, masterKey, now);
  });

/**
 * Prepares the signing keys before the platform serves requests: opens the master key, encrypts unencrypted keys of earlier versions,
 * creates the first key, and verifies that the stored private keys can be decrypted. Throws a fault that names the file if the master key
 * is missing or different.
 */
export const prepareSigningKeys = async (db: Db, source: MasterKeySource, now: number): Promise<MasterKey> => {
  let wereInClear = false;
  const masterKey = await withKeysLocked(db, async (trx) => {
    const rows = await trx.selectFrom('signing_keys').select(['kid', 'private_key']).execute();
    const stored = rows.flatMap(({ kid, private_key: text }) => (text === null ? [] : [{ kid, text }]));
    const key = openMasterKey(
      source,
      stored.some(({ text }) => isEncrypted(text)),
    );
    for (const { kid, text } of stored) {
      if (isEncrypted(text)) {
        key.decrypt(purposeOf(kid), text);
        continue;
      }
      wereInClear = true;
      const private_key = key.encrypt(purposeOf(kid), text);
      await trx.updateTable('signing_keys').set({ private_key }).where('kid', '=', kid).execute();
    }
    return key;
  });
  await makeFirstSigningKey(db, masterKey, now);
  // Rewrites the table, because the unencrypted rows would remain in its file. Errors are ignored, for example if the table is in use;
  // PostgreSQL's next vacuum removes the rows then.
  if (wereInClear) await sql`vacuum (full) signing_keys`.execute(db).catch(() => {});
  return masterKey;
};

export interface RotateOptions {
  /** Invalidates the old keys at once, together with all tokens signed by them. For a leaked key or a lost master key. */
  readonly discardOld: boolean;
}

/**
 * Creates a new signing key and returns its id. The previous keys verify tokens for another hour. Running platforms notice the new key
 * within seconds.
 */
export const rotateSigningKeys = (
  { db, clock }: OperatorContext,
  actor: OperatorActor,
  source: MasterKeySource,
  { discardOld }: RotateOptions,
): Promise<string> =>
  withKeysLocked(db, async (trx) => {
    const now = clock.now();
    const rows = await signingKeyRows(trx, now);
    const signing = rows.find(({ private_key }) => private_key !== null && isEncrypted(private_key));
    const masterKey = openMasterKey(source, !discardOld && signing !== undefined);
    if (discardOld) await trx.deleteFrom('signing_keys').execute();
    else {
      // Make sure that the master key is the key of the running platforms, which could not decrypt the new signing key otherwise.
      if (signing !== undefined) openPrivateKey(masterKey, signing);
      await retireKeys(trx, now);
    }
    const kid = await insertKey(trx, masterKey, now);
    const details = {
      kid,
      replaced: rows.filter(({ retired_at }) => retired_at === null).length,
      discarded: discardOld,
    };
    await writeAudit(trx, { actor: actorName(actor), action: 'signing_keys.rotated', details });
    return kid;
  });

/**
 * Marks the signing keys as replaced and deletes their private keys. A process that is signing at this moment has the private key in
 * memory.
 */
const retireKeys = async (trx: Transaction<Schema>, now: number): Promise<void> => {
  await trx.deleteFrom('signing_keys').where('retired_at', '<=', verifiesSince(now)).execute();
  await trx
    .updateTable('signing_keys')
    .set({ retired_at: new Date(now), private_key: null })
    .where('retired_at', 'is', null)
    .execute();
};

const insertKey = async (trx: Transaction<Schema>, masterKey: MasterKey, now: number): Promise<string> => {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const kid = randomId('sig');
  const row = {
    kid,
    public_key: JSON.stringify(await exportJWK(publicKey)),
    private_key: masterKey.encrypt(purposeOf(kid), JSON.stringify(await exportJWK(privateKey))),
    created_at: new Date(now),
  };
  await trx.insertInto('signing_keys').values(row).execute();
  return kid;
};

const withKeysLocked = <T>(db: Db, work: (trx: Transaction<Schema>) => Promise<T>): Promise<T> =>
  db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(${SIGNING_KEYS_LOCK})`.execute(trx);
    return work(trx);
  });

export interface ListedSigningKey {
  readonly kid: string;
  readonly createdAt: Date;
  /** End of the key's validity; null for the key that signs. */
  readonly verifiesUntil: Date | null;
}

export const listSigningKeys = async ({ db, clock }: OperatorContext): Promise<ListedSigningKey[]> =>
  (await signingKeyRows(db, clock.now())).map(({ kid, created_at, retired_at }) => ({
    kid,
    createdAt: created_at,
    verifiesUntil: retired_at === null ? null : new Date(retired_at.getTime() + SIGNING_KEY_RETIRED_MS),
  }));
