import { expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from './test-database.fixture.ts';
import { fingerprintOf, makeAsNew } from './used-database.fixture.ts';

const contentsOf = async ({ pool }: TestDatabase): Promise<unknown> => {
  const { rows } = await pool.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'S') order by oid`,
  );
  return Promise.all(rows.map(async ({ name }) => [name, (await pool.query(`select * from ${name}`)).rows]));
};

const withDatabase = async (use: (database: TestDatabase, print: string) => Promise<void>): Promise<void> => {
  const database = await createTestDatabase();
  try {
    await use(database, await fingerprintOf(database.url));
  } finally {
    await database.close();
  }
};

it('a reused test database has no rows and restarted sequences, even for tables with delete triggers', () =>
  withDatabase(async (database, print) => {
    const before = await contentsOf(database);
    await database.pool.query(`insert into audit_log (actor, action) values ('a test', 'x')`);
    expect(await contentsOf(database)).not.toEqual(before);
    expect(await makeAsNew(database.url, print)).toBe(true);
    expect(await contentsOf(database)).toEqual(before);
  }));

it.each([
  'alter table audit_log add column extra text',
  'alter table audit_log disable trigger all',
  'create table extra (id int)',
  `delete from kysely_migration where name like '0001%'`,
  `update schema_notes set oldest_version = '9.0.0'`,
])('a test database is not reused after: %s', (statement) =>
  withDatabase(async (database, print) => {
    await database.pool.query(statement);
    expect(await makeAsNew(database.url, print)).toBe(false);
  }),
);
