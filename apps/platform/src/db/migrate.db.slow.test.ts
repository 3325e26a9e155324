import { createLogger } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { type Kysely, type Migration, Migrator, sql } from 'kysely';
import { afterEach, describe, expect, it } from 'vitest';
import { Database, type Db } from './database.ts';
import { checkSchema, migrate } from './migrate.ts';
import { ALL_MIGRATIONS } from './migrations/all-migrations.ts';
import type { SchemaMigration, Version } from './migrations/schema-migration.ts';
import { createTestDatabase, type TestDatabase, type TestDatabaseOptions } from './test-database.fixture.ts';

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const database of opened.splice(0).reverse()) await database.close();
});

const open = async (options: TestDatabaseOptions = {}): Promise<TestDatabase> => {
  const database = await createTestDatabase(options);
  opened.push(database);
  return database;
};

const openAgain = ({ url }: TestDatabase): Database => {
  const database = new Database({ url, logger: createLogger({ format: 'human', level: 'silent' }) });
  opened.push(database);
  return database;
};

const OWN = { version: '0.2.5' };
const NAMES = Object.keys(ALL_MIGRATIONS);
const LAST = NAMES.at(-1) ?? '';

type Up = SchemaMigration['up'];

const createsTable =
  (name: string): Up =>
  async (db: Kysely<unknown>) => {
    await sql`create table ${sql.id(name)} (id int primary key)`.execute(db);
  };

/** The migrations of a made-up newer version. */
const newer = (...more: readonly (readonly [name: string, oldestVersion: Version, up?: Up])[]) => ({
  version: '0.3.0',
  migrations: {
    ...ALL_MIGRATIONS,
    ...Object.fromEntries(
      more.map(([name, oldestVersion, up = createsTable(`by_${name.slice(0, 4)}`)]) => [name, { oldestVersion, up }]),
    ),
  },
});

const history = async (db: Db): Promise<string[]> => {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  return rows.map(({ name }) => name);
};

const notes = async (db: Db): Promise<Record<string, string>> => {
  const rows = await db.selectFrom('schema_notes').selectAll().execute();
  return Object.fromEntries(rows.map(({ migration, oldest_version }) => [migration, oldest_version]));
};

const NOTES = Object.fromEntries(
  Object.entries(ALL_MIGRATIONS).map(([name, { oldestVersion }]) => [name, oldestVersion]),
);

const nameOf = ({ directUrl }: TestDatabase): string => new URL(directUrl.reveal()).pathname.slice(1);

/** A connection to the same database on which every write fails. */
const openReadOnly = async (database: TestDatabase): Promise<Db> => {
  await sql`alter database ${sql.id(nameOf(database))} set default_transaction_read_only = on`.execute(database.db);
  return openAgain(database).db;
};

describe('migrate', () => {
  it('brings an empty database up to date, once, and notes the oldest version of each migration', async () => {
    const { db } = await open({ empty: true });
    expect(await migrate(db, OWN)).toEqual({ applied: NAMES, newer: [] });
    expect(await migrate(db, OWN)).toEqual({ applied: [], newer: [] });
    expect(await notes(db)).toEqual(NOTES);
  });

  it('runs each migration once if three processes start together', async () => {
    const first = await open({ empty: true });
    const all = [first, openAgain(first), openAgain(first)];
    const results = await Promise.all(all.map(({ db }) => migrate(db, OWN)));
    expect(results.flatMap(({ applied }) => applied).toSorted()).toEqual(NAMES);
    expect(await history(first.db)).toEqual(NAMES);
  });

  it('runs each migration once even if the database defaults to a stricter isolation level', async () => {
    const first = await open({ empty: true });
    await sql`alter database ${sql.id(nameOf(first))} set default_transaction_isolation = 'serializable'`.execute(
      first.db,
    );
    const results = await Promise.all([openAgain(first), openAgain(first)].map(({ db }) => migrate(db, OWN)));
    expect(results.flatMap(({ applied }) => applied).toSorted()).toEqual(NAMES);
  });

  it('leaves no advisory lock on a connection, which a pooler could pass on', async () => {
    const { db } = await open({ empty: true, connections: 1 });
    await migrate(db, OWN);
    const { rows } = await sql`select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`.execute(db);
    expect(rows).toEqual([]);
  });

  it('keeps the migrations before a failed migration, undoes the failed migration, and names it', async () => {
    const { db } = await open();
    const fails: Up = async (trx) => {
      await createsTable('half')(trx);
      await sql`select 1 / 0`.execute(trx);
    };
    const broken = newer(['9001-good', '0.2.0'], ['9002-bad', '0.2.0', fails], ['9003-after', '0.2.0']);
    await expect(migrate(db, broken)).rejects.toThrow('migration 9002-bad failed: division by zero');
    expect(await history(db)).toEqual([...NAMES, '9001-good']);
    expect((await notes(db))['9002-bad']).toBe(undefined);
    const repaired = newer(
      ['9001-good', '0.2.0'],
      ['9002-bad', '0.2.0', createsTable('half')],
      ['9003-after', '0.2.0'],
    );
    expect(await migrate(db, repaired)).toEqual({ applied: ['9002-bad', '9003-after'], newer: [] });
  });

  it('continues after a process was killed within a migration', async () => {
    const first = await open();
    const second = openAgain(first);
    let backend = 0;
    const hangs: Up = async (trx) => {
      await createsTable('half')(trx);
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
      backend = rows[0]?.pid ?? 0;
      await sql`select pg_sleep(60)`.execute(trx);
    };
    const killed = migrate(first.db, newer(['9001-a', '0.2.0'], ['9002-b', '0.2.0', hangs])).catch(() => 'killed');
    await eventually(() => expect(backend).toBeGreaterThan(0));
    const next = newer(['9001-a', '0.2.0'], ['9002-b', '0.2.0', createsTable('half')]);
    const waiting = migrate(second.db, next);
    await sql`select pg_terminate_backend(${backend})`.execute(second.db);
    expect(await killed).toBe('killed');
    expect(await waiting).toEqual({ applied: ['9002-b'], newer: [] });
  });

  const deadlock = sql`do $$ begin raise exception 'made up' using errcode = 'deadlock_detected'; end $$`;

  it('repeats a migration that PostgreSQL has undone because of a deadlock with a running server', async () => {
    const { db } = await open();
    let tries = 0;
    const losesTwice: Up = async (trx) => {
      tries += 1;
      await createsTable('made_up')(trx);
      if (tries < 3) await deadlock.execute(trx);
    };
    expect(await migrate(db, newer(['9001-a', '0.2.0', losesTwice]))).toEqual({ applied: ['9001-a'], newer: [] });
  });

  it('gives up a migration that loses every deadlock', async () => {
    const { db } = await open();
    const loses: Up = async (trx) => void (await deadlock.execute(trx));
    await expect(migrate(db, newer(['9001-a', '0.2.0', loses]))).rejects.toThrow('migration 9001-a failed: made up');
  });

  it('finds its tables behind a schema that was created in front of them', async () => {
    const first = await open();
    await sql`create schema ahead`.execute(first.db);
    await sql`alter database ${sql.id(nameOf(first))} set search_path = ahead, public`.execute(first.db);
    expect(await migrate(openAgain(first).db, OWN)).toEqual({ applied: [], newer: [] });
  });

  it('takes over the history of version 0.1.0', async () => {
    const { db } = await open({ empty: true });
    const old = await versionWithoutNotes(db).migrateToLatest();
    expect(old.error).toBe(undefined);
    expect(await migrate(db, OWN)).toEqual({ applied: NAMES.slice(21), newer: [] });
    expect(await notes(db)).toEqual(NOTES);
  });

  it('depends on no clock: migrations that seem to be applied in another order are fine', async () => {
    const { db } = await open();
    await sql`update kysely_migration set timestamp = '2031-01-01T00:00:00.000Z' where name = ${NAMES[3]}`.execute(db);
    await sql`update kysely_migration set timestamp = 'garbage' where name = ${NAMES[5]}`.execute(db);
    expect(await migrate(db, newer(['9001-a', '0.2.0']))).toEqual({ applied: ['9001-a'], newer: [] });
  });
});

/** The way version 0.1.0 migrates. */
const versionWithoutNotes = (db: Db): Migrator => {
  const migrations = Object.fromEntries(Object.entries(ALL_MIGRATIONS).slice(0, 21)) as Record<string, Migration>;
  return new Migrator({ db, provider: { getMigrations: async () => migrations } });
};

describe('on the database of a newer version', () => {
  it('migrate accepts migrations that allow this version, and writes nothing', async () => {
    const database = await open();
    await migrate(database.db, newer(['9001-a', '0.1.0'], ['9002-b', '0.2.5']));
    const db = await openReadOnly(database);
    expect(await migrate(db, OWN)).toEqual({ applied: [], newer: ['9001-a', '9002-b'] });
    expect(await checkSchema(db, OWN)).toEqual({ pending: [], newer: ['9001-a', '9002-b'] });
  });

  it.each([
    ['a newer minor version', '0.3.0', ' and requires version 0.3.0 or newer'],
    ['a newer patch', '0.2.6', ' and requires version 0.2.6 or newer'],
  ] as const)('migrate rejects a migration for %s before it writes anything', async (_, oldestVersion, needs) => {
    const database = await open();
    await migrate(database.db, newer(['9001-a', '0.1.0'], ['9002-b', oldestVersion]));
    const db = await openReadOnly(database);
    const fault = { code: 'CONFIG_DATABASE_NEWER', values: { migration: '9002-b', version: '0.2.5', needs } };
    await expect(migrate(db, OWN)).rejects.toMatchObject(fault);
    await expect(migrate(db, OWN)).rejects.toThrow('newer version');
    await expect(checkSchema(db, OWN)).rejects.toMatchObject(fault);
  });

  it.each(['', 'garbage', '0.2', 'latest', "0.1.0'; drop table users; --"])(
    'migrate rejects a migration with the note %j',
    async (note) => {
      const { db } = await open();
      await migrate(db, newer(['9001-a', '0.1.0']));
      await sql`update schema_notes set oldest_version = ${note} where migration = '9001-a'`.execute(db);
      await expect(migrate(db, OWN)).rejects.toMatchObject({ code: 'CONFIG_DATABASE_NEWER', values: { needs: '' } });
    },
  );

  it.each([
    ['its note is missing', sql`delete from schema_notes where migration = '9001-a'`],
    ['all notes are missing', sql`drop table schema_notes`],
    ['a known migration is missing', sql`delete from kysely_migration where name = ${LAST}`],
  ])('migrate rejects a migration that allows this version if %s', async (_, damage) => {
    const { db } = await open();
    await migrate(db, newer(['9001-a', '0.1.0']));
    await damage.execute(db);
    await expect(migrate(db, OWN)).rejects.toMatchObject({
      code: 'CONFIG_DATABASE_NEWER',
      values: { migration: '9001-a', needs: '' },
    });
  });

  it('version 0.1.0 is rejected, and writes nothing', async () => {
    const db = await openReadOnly(await open());
    const { error } = await versionWithoutNotes(db).migrateToLatest();
    expect(String(error)).toContain(`previously executed migration ${NAMES[21]} is missing`);
  });

  it('migrate does not wait for a newer server that is still migrating', async () => {
    const first = await open();
    let isMigrating = false;
    let finish = (): void => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const slow: Up = async () => {
      isMigrating = true;
      await finished;
    };
    const migrating = migrate(first.db, newer(['9001-a', '0.1.0'], ['9002-b', '0.1.0', slow]));
    await eventually(() => expect(isMigrating).toBe(true));
    expect(await migrate(openAgain(first).db, OWN)).toEqual({ applied: [], newer: ['9001-a'] });
    finish();
    await migrating;
  });

  it.each([
    ['allows', '0.2.0' as const, true],
    ['excludes', '0.3.0' as const, false],
  ])('an older server that migrates at the same time as a newer server that %s it', async (_, oldest, isAllowed) => {
    const first = await open({ empty: true });
    const [old, next] = [openAgain(first), openAgain(first)];
    const [older, newest] = await Promise.allSettled([
      migrate(old.db, OWN),
      migrate(next.db, newer(['9001-a', oldest], ['9002-b', oldest])),
    ]);
    expect(newest.status).toBe('fulfilled');
    expect(await history(first.db)).toEqual([...NAMES, '9001-a', '9002-b']);
    if (isAllowed) expect(older.status).toBe('fulfilled');
    else if (older.status === 'rejected') expect(older.reason).toMatchObject({ code: 'CONFIG_DATABASE_NEWER' });
  });
});

it('checkSchema lists the missing migrations with their locks and their oldest version, and writes nothing', async () => {
  const db = await openReadOnly(await open());
  const migrations = {
    ...ALL_MIGRATIONS,
    '9001-a': { oldestVersion: '0.2.0', up: async () => {} } as const,
    '9002-b': { oldestVersion: '0.1.0', longLocks: ['users', 'tunnel_log'], up: async () => {} } as const,
  };
  expect(await checkSchema(db, { ...OWN, migrations })).toEqual({
    pending: [
      { name: '9001-a', longLocks: [], oldestVersion: '0.2.0' },
      { name: '9002-b', longLocks: ['users', 'tunnel_log'], oldestVersion: '0.1.0' },
    ],
    newer: [],
  });
});

it('checkSchema lists all migrations of an empty database, and writes nothing', async () => {
  const db = await openReadOnly(await open({ empty: true }));
  expect((await checkSchema(db, OWN)).pending.map(({ name }) => name)).toEqual(NAMES);
});

it('each test gets a separate database', async () => {
  const one = await open();
  const two = await open();
  await one.db.insertInto('audit_log').values({ actor: 'operator', action: 'tried' }).execute();
  expect(await one.db.selectFrom('audit_log').select('action').execute()).toEqual([{ action: 'tried' }]);
  expect(await two.db.selectFrom('audit_log').select('action').execute()).toEqual([]);
});

it('the audit log rejects update, delete and truncate', async () => {
  const { db } = await open();
  await db.insertInto('audit_log').values({ actor: 'operator', action: 'tried' }).execute();
  const refusal = 'the audit log is only ever added to';
  await expect(sql`update audit_log set action = 'other'`.execute(db)).rejects.toThrow(refusal);
  await expect(db.deleteFrom('audit_log').execute()).rejects.toThrow(refusal);
  await expect(sql`truncate audit_log`.execute(db)).rejects.toThrow(refusal);
  expect(await db.selectFrom('audit_log').select('action').execute()).toEqual([{ action: 'tried' }]);
});
