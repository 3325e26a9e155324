// Migrates the tables to the latest version. Forward only, and one process at a time (kysely takes an advisory lock in PostgreSQL).
import { Fault } from '@tunnel/errors';
import { type Migration, Migrator, sql } from 'kysely';
import { Database, type DatabaseOptions, type Db } from './database.ts';
import { up as accounts } from './migrations/0001-accounts.ts';
import { up as keysAndUsage } from './migrations/0002-keys-and-usage.ts';
import { up as signingKeys } from './migrations/0003-signing-keys.ts';
import { up as billing } from './migrations/0004-billing.ts';
import { up as regionsAndFilters } from './migrations/0005-regions-and-filters.ts';
import { up as retentionAndEntitlement } from './migrations/0006-retention-and-entitlement.ts';
import { up as encryptedSigningKeys } from './migrations/0007-encrypted-signing-keys.ts';
import { up as keysByAccount } from './migrations/0008-keys-by-account.ts';
import { up as tunnelAddresses } from './migrations/0009-tunnel-addresses.ts';
import { up as ownAccounts } from './migrations/0010-own-accounts.ts';
import { up as cards } from './migrations/0011-cards.ts';
import { up as changeEpochs } from './migrations/0012-change-epochs.ts';
import { up as oauth } from './migrations/0013-oauth.ts';
import { up as names } from './migrations/0014-names.ts';
import { up as servedEndpoints } from './migrations/0015-served-endpoints.ts';
import { up as domains } from './migrations/0016-domains.ts';
import { up as certificates } from './migrations/0017-certificates.ts';
import { up as p2pNames } from './migrations/0018-p2p-names.ts';
import { up as creations } from './migrations/0019-creations.ts';
import { up as assignedNames } from './migrations/0020-assigned-names.ts';
import { up as firstAccount } from './migrations/0021-first-account.ts';

/** All migrations, applied in this order. The name of a released migration never changes. */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-accounts': { up: accounts },
  '0002-keys-and-usage': { up: keysAndUsage },
  '0003-signing-keys': { up: signingKeys },
  '0004-billing': { up: billing },
  '0005-regions-and-filters': { up: regionsAndFilters },
  '0006-retention-and-entitlement': { up: retentionAndEntitlement },
  '0007-encrypted-signing-keys': { up: encryptedSigningKeys },
  '0008-keys-by-account': { up: keysByAccount },
  '0009-tunnel-addresses': { up: tunnelAddresses },
  '0010-own-accounts': { up: ownAccounts },
  '0011-cards': { up: cards },
  '0012-change-epochs': { up: changeEpochs },
  '0013-oauth': { up: oauth },
  '0014-names': { up: names },
  '0015-served-endpoints': { up: servedEndpoints },
  '0016-domains': { up: domains },
  '0017-certificates': { up: certificates },
  '0018-p2p-names': { up: p2pNames },
  '0019-creations': { up: creations },
  '0020-assigned-names': { up: assignedNames },
  '0021-first-account': { up: firstAccount },
};

const migratorOf = (db: Db): Migrator =>
  new Migrator({ db, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } });

/**
 * Applies the missing migrations and returns their names. Throws the error of a failed migration; the migrations before it stay applied.
 */
export const migrate = async (db: Db): Promise<string[]> => {
  const { error, results = [] } = await migratorOf(db).migrateToLatest();
  const migration = error === undefined ? undefined : await unknownMigration(db);
  if (migration !== undefined) throw new Fault('CONFIG_DATABASE_NEWER', { migration }, { cause: error });
  if (error !== undefined)
    throw error instanceof Error ? error : new Error('database migration failed', { cause: error });
  return results.filter(({ status }) => status === 'Success').map(({ migrationName }) => migrationName);
};

/**
 * Finds an applied migration that this version does not know. After a downgrade, the error then states that the database is newer,
 * instead of a corrupt migration history.
 */
const unknownMigration = async (db: Db): Promise<string | undefined> => {
  const applied = sql<{ name: string }>`select name from kysely_migration order by name`;
  // The table or the whole database may not exist yet. The original error is thrown in that case.
  const { rows } = await applied.execute(db).catch(() => ({ rows: [] }));
  return rows.find(({ name }) => !Object.hasOwn(MIGRATIONS, name))?.name;
};

/**
 * Migrates over separate connections without a statement timeout. Creating an index on a long log takes time, and so does waiting for
 * another process that creates it.
 */
export const migratePatiently = async (options: Pick<DatabaseOptions, 'url' | 'logger'>): Promise<string[]> => {
  const database = new Database({ ...options, connections: 2, patient: true });
  try {
    return await migrate(database.db);
  } finally {
    await database.close();
  }
};

/** Returns the names of migrations not applied yet. */
export const pendingMigrations = async (db: Db): Promise<string[]> => {
  const all = await migratorOf(db).getMigrations();
  return all.filter(({ executedAt }) => executedAt === undefined).map(({ name }) => name);
};
