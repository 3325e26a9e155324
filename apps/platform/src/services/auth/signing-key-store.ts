// The keys that access tokens are signed with, as the database keeps them: private parts encrypted under the master key, one that signs,
// and those it replaced, which verify for an hour more and have no private part any more.
import { randomId } from '@tunnel/runtime';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { sql, type Transaction } from 'kysely';
import type { Db } from '../../db/database.ts';
import { isEncrypted, type MasterKey, type MasterKeySource, openMasterKey } from '../../db/master-key.ts';
import type { Schema } from '../../db/schema.ts';
import { actorName, writeAudit } from '../shared/audit.ts';
import type { OperatorActor, OperatorContext } from '../shared/service-context.ts';

/** A key that was replaced verifies for so long: four times as long as any token of it lives. */
export const SIGNING_KEY_RETIRED_MS = 60 * 60_000;

/** Two letters of ASCII before it, so that it meets no other lock: 'sk' 1. */
const SIGNING_KEYS_LOCK = 0x736b_0001;

export interface SigningKeyRow {
  readonly kid: string;
  readonly public_key: Record<string, unknown>;
  /** null: it was replaced. */
  readonly private_key: string | null;
  readonly created_at: Date;
  readonly retired_at: Date | null;
}

/** Those that count at this time; the one that signs first. */
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

/** Throws a fault that names the master key's file when that is not the right one. */
export const openPrivateKey = (masterKey: MasterKey, { kid, private_key }: SigningKeyRow): JWK =>
  JSON.parse(masterKey.decrypt(purposeOf(kid), private_key ?? '')) as JWK;

const purposeOf = (kid: string) => ({ kind: 'signing-key', id: kid }) as const;

/** Two processes that start at once make one key between them. */
export const makeFirstSigningKey = (db: Db, masterKey: MasterKey, now: number): Promise<void> =>
  withKeysLocked(db, async (trx) => {
    const rows = await signingKeyRows(trx, now);
    if (rows.every(({ retired_at }) => retired_at !== null)) await insertKey(trx, masterKey, now);
  });

/**
 * Before the platform serves: opens the master key, encrypts keys of before, makes the first one, and proves that the one which signs
 * can be opened. Throws a fault that names the file when the master key is lost or another one.
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
  // The old rows lie in the table's file until it is written anew. Somebody may read it right now; then the next clean-up of PostgreSQL does it.
  if (wereInClear) await sql`vacuum (full) signing_keys`.execute(db).catch(() => {});
  return masterKey;
};

export interface RotateOptions {
  /** The others end now, and the tokens they signed: one leaked, or the master key is lost. */
  readonly discardOld: boolean;
}

/** A new key signs; others that sign now verify for an hour more. Platforms that run see it within seconds. Gives its id. */
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
      // With another master key than that of the platforms, the new one could be opened by none of them.
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

/** Their private parts are of no use to anybody: whoever signs right now has it in memory. */
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
  /** null: it signs, and has no end. */
  readonly verifiesUntil: Date | null;
}

export const listSigningKeys = async ({ db, clock }: OperatorContext): Promise<ListedSigningKey[]> =>
  (await signingKeyRows(db, clock.now())).map(({ kid, created_at, retired_at }) => ({
    kid,
    createdAt: created_at,
    verifiesUntil: retired_at === null ? null : new Date(retired_at.getTime() + SIGNING_KEY_RETIRED_MS),
  }));
