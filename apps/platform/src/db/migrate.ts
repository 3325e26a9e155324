// Migrates the tables to the latest version. Forward only, and one process at a time, even behind a pooler.
import { Fault } from '@tunnel/errors';
import { type Kysely, sql, type Transaction } from 'kysely';
import { Database, type DatabaseOptions, type Db } from './database.ts';
import { DatabaseAway } from './database-away.ts';
import { ALL_MIGRATIONS } from './migrations/all-migrations.ts';
import type { SchemaMigration } from './migrations/schema-migration.ts';
import type { Schema } from './schema.ts';
import { judgeSchema, type SchemaHistory } from './schema-history.rules.ts';

export interface MigrateOptions {
  /** Version of the product. Decides whether the product can run on a database with unknown migrations. */
  readonly version: string;
  /** Only for tests. */
  readonly migrations?: Readonly<Record<string, SchemaMigration>>;
}

export interface SchemaResult {
  /** Migrations applied by this call, in order. */
  readonly applied: readonly string[];
  /** Migrations of a newer version, which allow this version. */
  readonly newer: readonly string[];
}

export interface SchemaCheck {
  /** Migrations that are not applied yet, in order. */
  readonly pending: readonly PendingMigration[];
  /** Migrations of a newer version, which allow this version. */
  readonly newer: readonly string[];
}

export interface PendingMigration {
  readonly name: string;
  /** Tables that the migration locks for a time that grows with their number of rows. */
  readonly longLocks: readonly string[];
  /** Oldest version of the product that can run on the database afterwards. */
  readonly oldestVersion: string;
}

/**
 * Applies the missing migrations. Throws the error of a failed migration; the migrations before it stay applied, because each migration is
 * a separate transaction and holds its locks no longer than necessary. Throws CONFIG_DATABASE_NEWER before writing anything if a newer
 * version has changed the database in a way that this version cannot handle.
 */
export const migrate = async (db: Db, options: MigrateOptions): Promise<SchemaResult> => {
  // Without missing migrations no lock is taken. A crashed server then also restarts while a newer server is migrating.
  const { pending, newer } = await checkSchema(db, options);
  if (pending.length === 0) return { applied: [], newer };
  const applied: string[] = [];
  for (;;) {
    const step = await retryingDeadlocks(() => inTransaction(db, (trx) => applyNext(trx, options)));
    if (step.name === undefined) return { applied, newer: step.newer };
    applied.push(step.name);
  }
};

/** With a stricter isolation level, a migration would not see the migrations that other servers applied while it waited for the lock. */
const inTransaction = <T>(db: Db, act: (trx: Transaction<Schema>) => Promise<T>): Promise<T> =>
  db.transaction().setIsolationLevel('read committed').execute(act);

/** Attempts of a migration. PostgreSQL ends a deadlock with a running server by undoing the migration or the server's transaction. */
const DEADLOCK_TRIES = 5;
const DEADLOCK_DETECTED = '40P01';

const retryingDeadlocks = async <T>(act: () => Promise<T>): Promise<T> => {
  for (let tries = 1; ; tries += 1) {
    try {
      return await act();
    } catch (error) {
      const isDeadlock = (error as { cause?: { code?: unknown } }).cause?.code === DEADLOCK_DETECTED;
      if (!isDeadlock || tries === DEADLOCK_TRIES) throw error;
    }
  }
};

/** Reads which migrations are missing. Writes nothing. Throws CONFIG_DATABASE_NEWER like `migrate`. */
export const checkSchema = async (
  db: Db,
  { version, migrations = ALL_MIGRATIONS }: MigrateOptions,
): Promise<SchemaCheck> => {
  const { pending, newer } = usable(await readHistory(db), migrations, version);
  const steps = Object.entries(migrations).map(([name, { longLocks = [], oldestVersion }]) => ({
    name,
    longLocks,
    oldestVersion,
  }));
  return { pending: steps.filter(({ name }) => pending.includes(name)), newer };
};

/**
 * Applies the next missing migration, and returns its name. The history is read under the lock of all migrations, so that every decision
 * takes the migrations of other servers into account.
 */
const applyNext = async (
  trx: Transaction<Schema>,
  { version, migrations = ALL_MIGRATIONS }: MigrateOptions,
): Promise<{ name?: string; newer: readonly string[] }> => {
  await takeLock(trx);
  const { pending, newer } = usable(await readHistory(trx), migrations, version);
  const [name] = pending;
  const migration = name === undefined ? undefined : migrations[name];
  if (name === undefined || migration === undefined) return { newer };
  await createHistory(trx);
  try {
    // A migration must not depend on the types of today's tables.
    await migration.up(trx as unknown as Kysely<unknown>);
  } catch (error) {
    if (error instanceof DatabaseAway) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`migration ${name} failed: ${reason}`, { cause: error });
  }
  await writeHistory(trx, name, migration.oldestVersion);
  return { name, newer };
};

/** Time limit for the lock of all migrations, and for the locks of a migration. */
const LOCK_TIMEOUT = '1h';

/**
 * Takes the lock that migrations of all versions take. The lock ends with the transaction: behind a pooler, a lock of the session could
 * stay on a connection that is later used by others.
 */
const takeLock = async (trx: Transaction<Schema>): Promise<void> => {
  await sql`select set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`.execute(trx);
  await sql`select pg_advisory_xact_lock(3853314791062309107)`.execute(trx);
};

/** Creates the tables of the migration history, in the form known to version 0.1.0. */
const createHistory = async (trx: Transaction<Schema>): Promise<void> => {
  if (await exists(trx, 'kysely_migration')) return;
  await sql`
    create table kysely_migration (name varchar(255) primary key, timestamp varchar(255) not null)`.execute(trx);
  await sql`
    create table kysely_migration_lock (id varchar(255) primary key, is_locked integer not null default 0)`.execute(
    trx,
  );
  await sql`insert into kysely_migration_lock (id) values ('migration_lock')`.execute(trx);
};

const writeHistory = async (trx: Transaction<Schema>, name: string, oldestVersion: string): Promise<void> => {
  await sql`
    insert into kysely_migration (name, timestamp)
    values (${name}, to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`.execute(trx);
  // The migration that creates the notes also writes notes for the migrations before it.
  if (!(await exists(trx, 'schema_notes'))) return;
  await trx
    .insertInto('schema_notes')
    .values({ migration: name, oldest_version: oldestVersion })
    .onConflict((conflict) => conflict.column('migration').doUpdateSet({ oldest_version: oldestVersion }))
    .execute();
};

/** Queries the catalog, because functions such as to_regclass can miss a table that another connection has just created. */
const exists = async (db: Db, table: string): Promise<boolean> => {
  const { rows } = await sql<{ found: boolean }>`
    select exists (
      select from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where relname = ${table} and nspname = any (current_schemas(false))
    ) as found`.execute(db);
  return rows[0]?.found === true;
};

/**
 * Reads the history. Notes are read last, so that every applied migration in the result has its note even if a newer server is migrating
 * at the same time.
 */
const readHistory = async (db: Db): Promise<SchemaHistory> => {
  if (!(await exists(db, 'kysely_migration'))) return { applied: [], notes: new Map() };
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(db);
  const notes = (await exists(db, 'schema_notes')) ? await db.selectFrom('schema_notes').selectAll().execute() : [];
  return {
    applied: rows.map(({ name }) => name),
    notes: new Map(notes.map(({ migration, oldest_version }) => [migration, oldest_version])),
  };
};

const usable = (
  history: SchemaHistory,
  migrations: Readonly<Record<string, SchemaMigration>>,
  version: string,
): { pending: readonly string[]; newer: readonly string[] } => {
  const verdict = judgeSchema(history, Object.keys(migrations).toSorted(), version);
  if (verdict.kind === 'usable') return verdict;
  const { migration, oldestVersion } = verdict;
  const needs = oldestVersion === null ? '' : ` and requires version ${oldestVersion} or newer`;
  throw new Fault('CONFIG_DATABASE_NEWER', { migration, version, needs });
};

/**
 * Migrates over separate connections without a statement timeout. Creating an index on a long log takes time, and so does waiting for
 * another process that creates it.
 */
export const migratePatiently = async (
  connection: Pick<DatabaseOptions, 'url' | 'logger'>,
  options: MigrateOptions,
): Promise<SchemaResult> => {
  const database = new Database({ ...connection, connections: 1, patient: true });
  try {
    return await migrate(database.db, options);
  } finally {
    await database.close();
  }
};
