import { createLogger } from '@tunnel/runtime';
import { sql } from 'kysely';
import { afterEach, expect, it } from 'vitest';
import { Database } from './database.ts';
import { migrate, pendingMigrations } from './migrate.ts';
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

it('migrate brings an empty database up to date, once', async () => {
  const { db } = await open({ empty: true });
  const pending = await pendingMigrations(db);
  expect(pending.length).toBeGreaterThan(0);
  expect(await migrate(db)).toEqual(pending);
  expect(await pendingMigrations(db)).toEqual([]);
  expect(await migrate(db)).toEqual([]);
});

it('migrate runs each migration once if two processes start together', async () => {
  const first = await open({ empty: true });
  const second = openAgain(first);
  const pending = await pendingMigrations(first.db);
  const [one, two] = await Promise.all([migrate(first.db), migrate(second.db)]);
  expect([...one, ...two]).toEqual(pending);
});

it('migrate rejects a database of a newer version', async () => {
  const { db } = await open();
  await sql`insert into kysely_migration (name, timestamp) values ('9999-of-tomorrow', 'now')`.execute(db);
  await expect(migrate(db)).rejects.toMatchObject({
    code: 'CONFIG_DATABASE_NEWER',
    values: { migration: '9999-of-tomorrow' },
  });
  await expect(migrate(db)).rejects.toThrow('newer version');
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
