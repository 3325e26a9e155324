// Every migration states which tables it locks for long, and keeps what older versions need. The statements of made-up migrations show
// that the observation would notice.
import { readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrate } from './migrate.ts';
import { ALL_MIGRATIONS } from './migrations/all-migrations.ts';
import type { SchemaMigration } from './migrations/schema-migration.ts';
import { observe, type SchemaChanges } from './schema-changes.fixture.ts';
import { compareVersions } from './schema-history.rules.ts';
import { createTestDatabase, type TestDatabase } from './test-database.fixture.ts';

const manifest = readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8');
const { version: RELEASED } = JSON.parse(manifest) as { version: string };

let database: TestDatabase;
const observed = new Map<string, SchemaChanges>();

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  const migrations = Object.fromEntries(
    Object.entries(ALL_MIGRATIONS).map(([name, migration]): [string, SchemaMigration] => [
      name,
      {
        ...migration,
        up: async (db) => {
          observed.set(name, await observe(db as never, migration.up));
        },
      },
    ]),
  );
  await migrate(database.db, { version: RELEASED, migrations });
});
afterAll(() => database.close());

describe.each(Object.entries(ALL_MIGRATIONS))(
  'migration %s',
  (name, { oldestVersion, longLocks = [], unusedSince }) => {
    const isAtMost = (version: string, other: string): boolean => (compareVersions(version, other) ?? NaN) <= 0;

    it('names the tables that it locks for long', () => {
      expect(longLocks).toEqual(observed.get(name)?.longLocks);
    });

    it('removes and narrows nothing, unless it names the release that stopped using the removed parts', () => {
      const narrowings = observed.get(name)?.narrowings ?? ['not observed'];
      if (unusedSince === undefined) expect(narrowings).toEqual([]);
      else expect(narrowings).not.toEqual([]);
    });

    it('allows a version that is already released', () => {
      expect([oldestVersion, isAtMost(oldestVersion, RELEASED)]).toEqual([oldestVersion, true]);
    });

    it('allows no version that uses a removed part', () => {
      expect(unusedSince === undefined || isAtMost(unusedSince, oldestVersion)).toBe(true);
    });
  },
);

/** Applies a made-up migration to the current tables, and takes it back. */
const changesBy = async (...statements: readonly string[]): Promise<SchemaChanges> => {
  let changes: SchemaChanges | undefined;
  const isDone = new Error('taken back');
  await database.db
    .transaction()
    .execute(async (trx) => {
      changes = await observe(trx, async (db) => {
        for (const statement of statements) await sql.raw(statement).execute(db);
      });
      throw isDone;
    })
    .catch((error: unknown) => {
      if (error !== isDone) throw error;
    });
  if (changes === undefined) throw new Error('not observed');
  return changes;
};

it.each([
  ['drops a table', 'drop table cap_notices', 'cap_notices no longer exists'],
  ['drops a column', 'alter table users drop column display_name', 'users.display_name no longer exists'],
  ['renames a table', 'alter table cap_notices rename to notices', 'cap_notices no longer exists'],
  ['renames a column', 'alter table users rename display_name to name', 'users.display_name no longer exists'],
  [
    'narrows a number',
    'alter table names alter column label type varchar(63)',
    'names.label changes from text to character varying(63)',
  ],
  [
    'narrows a text',
    'alter table api_keys alter column tunnel_count type integer',
    'api_keys.tunnel_count changes from bigint to integer',
  ],
  [
    'changes a type',
    'alter table edge_changes alter column code type jsonb using to_jsonb(code)',
    'edge_changes.code changes from text to jsonb',
  ],
  [
    'forbids null',
    'alter table users alter column display_name set not null',
    'users.display_name no longer allows null',
  ],
  [
    'requires a new value',
    'alter table users add column city text not null',
    'users.city is new, and requires a value',
  ],
  ['drops a default', 'alter table users alter column status drop default', 'users.status no longer has a default'],
  [
    'adds a check',
    'alter table users add constraint short check (length(email) < 10)',
    'users: constraint short is new or stricter',
  ],
  [
    'adds a check that it does not validate',
    'alter table users add constraint short check (length(email) < 10) not valid',
    'users: constraint short is new or stricter',
  ],
  [
    'adds a foreign key',
    'alter table tunnel_log add constraint key foreign key (key_id) references api_keys',
    'tunnel_log: constraint key is new or stricter',
  ],
  [
    'makes a column unique',
    'create unique index on users (display_name)',
    'CREATE UNIQUE INDEX ON public.users USING btree (display_name) is new',
  ],
  [
    'drops a unique index',
    'drop index names_by_label',
    'CREATE UNIQUE INDEX ON public.names USING btree (kind, region_id, label) no longer exists',
  ],
  [
    'hides a drop in a block',
    `do $$ begin execute 'alter table us' || 'ers drop column display_name'; end $$`,
    'users.display_name no longer exists',
  ],
])('a migration that %s is refused', async (_, statement, narrowing) => {
  expect((await changesBy(statement)).narrowings).toEqual([narrowing]);
});

it('a migration that removes a value from a list of allowed values is refused', async () => {
  const { narrowings } = await changesBy(
    'alter table users drop constraint users_status_check',
    "alter table users add constraint users_status_check check (status in ('active', 'closed'))",
  );
  expect(narrowings).toEqual(['users: constraint users_status_check is new or stricter']);
});

it('a migration that drops and creates a column again with another type is refused', async () => {
  const { narrowings } = await changesBy(
    'alter table users drop column display_name',
    'alter table users add column display_name jsonb',
  );
  expect(narrowings).toEqual(['users.display_name changes from text to jsonb']);
});

it.each([
  ['adds a table', ['create table extra (id int not null unique, user_id uuid not null references users (id))']],
  ['adds a column', ['alter table users add column city text']],
  ['adds a column with a default', ["alter table users add column city text not null default ''"]],
  [
    'adds columns with a check',
    ['alter table users add column city text, add column zip text, add check ((city is null) = (zip is null))'],
  ],
  ['adds a unique column', ['alter table users add column city text unique']],
  ['allows null', ['alter table users alter column email drop not null']],
  ['widens a number', ['alter table users alter column epoch type bigint']],
  ['drops an index', ['drop index tunnel_log_by_end']],
  [
    'creates a unique index again',
    ['drop index names_by_label', 'create unique index names_by_name on names (kind, region_id, label)'],
  ],
  [
    'allows more values',
    [
      'alter table users drop constraint users_status_check',
      "alter table users add constraint users_status_check check (status in ('active', 'suspended', 'closed'))",
    ],
  ],
  ['drops a check', ['alter table users drop constraint users_status_check']],
])('a migration that %s is allowed', async (_, statements) => {
  expect((await changesBy(...statements)).narrowings).toEqual([]);
});

it.each([
  ['creates an index', 'create index on tunnel_log (name)', ['tunnel_log']],
  ['rewrites a table', 'alter table tunnel_log alter column name type varchar(10)', ['tunnel_log']],
  [
    'adds a default that is different in each row',
    'alter table tunnel_log add column x uuid default gen_random_uuid()',
    ['tunnel_log'],
  ],
  ['checks all rows', 'alter table users add check (length(email) < 1000)', ['users']],
  ['checks all rows for null', 'alter table users alter column display_name set not null', ['users']],
  ['changes all rows', "update users set display_name = ''", ['users']],
  ['deletes rows', 'delete from usage_daily', ['usage_daily']],
  ['adds a foreign key', 'alter table tunnel_log add foreign key (key_id) references api_keys', ['tunnel_log']],
  ['adds a column with a constant default', "alter table tunnel_log add column x text not null default ''", []],
  ['adds a check without validation', 'alter table users add check (length(email) < 1000) not valid', []],
  [
    'creates a table with an index and a reference',
    'create table extra (id int primary key, user_id uuid references users (id))',
    [],
  ],
  ['drops an index', 'drop index tunnel_log_by_end', []],
])('a migration that %s: tables locked for long', async (_, statement, tables) => {
  expect((await changesBy(statement)).longLocks).toEqual(tables);
});
