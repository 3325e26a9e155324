import { readdirSync, readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from './test-database.fixture.ts';

const FOLDER = new URL('.', import.meta.url);
const SOURCE = readdirSync(FOLDER)
  .filter((file) => file === 'schema.ts' || file.endsWith('-tables.ts'))
  .map((file) => readFileSync(new URL(file, FOLDER), 'utf8'))
  .join('\n');
/** Tables of the migration library, which the schema types do not list. */
const OF_THE_MIGRATOR = ['kysely_migration', 'kysely_migration_lock'];

interface Column {
  readonly nullable: boolean;
  /** True if an insert may omit the column although it is not nullable. */
  readonly given: boolean;
  readonly kind: string;
}
type Tables = Record<string, Record<string, Column>>;

/** Tables according to the TypeScript types. Reads the interfaces of schema.ts as text, because types do not exist at run time. */
const tablesOfTypes = (): Tables => {
  const tables = fieldsOf('Schema').map(([table, type]) => {
    const columns = fieldsOf(type).map(([name, text]) => [name, columnOfType(text)] as const);
    return [table, Object.fromEntries(columns)] as const;
  });
  return Object.fromEntries(tables);
};

const fieldsOf = (name: string): [name: string, type: string][] => {
  const body = new RegExp(`^export interface ${name} \\{\\n([\\s\\S]*?)^\\}`, 'm').exec(SOURCE)?.[1];
  if (body === undefined) throw new Error(`schema.ts has no interface ${name}`);
  return [...body.matchAll(/^ {2}(\w+): (.*);$/gm)].map(([, field = '', type = '']) => [field, type]);
};

const columnOfType = (text: string): Column => ({
  nullable: text.includes('| null'),
  given: /^(Generated|GivenTimestamp|BigCount)\b|\| undefined/.test(text),
  kind: kindOfType(text),
});

const kindOfType = (text: string): string => {
  if (/Timestamp/.test(text)) return 'time';
  if (/Record<|unknown/.test(text)) return 'json';
  if (/\bboolean\b/.test(text)) return 'boolean';
  if (/\bnumber\b|BigCount/.test(text)) return 'number';
  return 'text';
};

interface ColumnRow {
  readonly table_name: string;
  readonly column_name: string;
  readonly is_nullable: 'YES' | 'NO';
  readonly has_default: boolean;
  readonly data_type: string;
}

const KINDS: Readonly<Record<string, string>> = {
  'timestamp with time zone': 'time',
  jsonb: 'json',
  boolean: 'boolean',
  integer: 'number',
  bigint: 'number',
  smallint: 'number',
  'double precision': 'number',
  text: 'text',
  uuid: 'text',
  date: 'text',
};

const tablesOfDatabase = async ({ db }: TestDatabase): Promise<Tables> => {
  const { rows } = await sql<ColumnRow>`
    select table_name, column_name, is_nullable, data_type,
      column_default is not null or is_identity = 'YES' as has_default
    from information_schema.columns where table_schema = 'public'`.execute(db);
  const tables: Tables = {};
  for (const row of rows.filter(({ table_name }) => !OF_THE_MIGRATOR.includes(table_name))) {
    const table = (tables[row.table_name] ??= {});
    const nullable = row.is_nullable === 'YES';
    table[row.column_name] = {
      nullable,
      given: row.has_default && !nullable,
      kind: KINDS[row.data_type] ?? `no kind in this test: ${row.data_type}`,
    };
  }
  return tables;
};

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.close());

it('the TypeScript table types match the migrated tables', async () => {
  const types = tablesOfTypes();
  expect(Object.keys(types).length).toBeGreaterThan(10);
  expect(types).toEqual(await tablesOfDatabase(database));
});

it('PostgreSQL counts become numbers, days strings, and timestamps dates', async () => {
  const { rows } = await sql<{ big: unknown; day: unknown; time: unknown }>`
    select 9007199254740991::bigint as big, '2026-02-28'::date as day, '2026-02-28T12:00:00Z'::timestamptz as time
  `.execute(database.db);
  expect(rows[0]).toEqual({ big: 9007199254740991, day: '2026-02-28', time: new Date('2026-02-28T12:00:00Z') });
});

it('foreign keys have an index, so that deletions need no full table scan, except for two', async () => {
  const { rows } = await sql<{ name: string }>`
    select link.conrelid::regclass || '.' || column_of.attname as name
    from pg_constraint link
    join pg_attribute column_of on column_of.attrelid = link.conrelid and column_of.attnum = link.conkey[1]
    where link.contype = 'f' and not exists (
      select from pg_index
      where indrelid = link.conrelid and indkey[0] = column_of.attnum and indpred is null
    )
    order by name
  `.execute(database.db);
  // Foreign keys to plans and edges need no index, because plans and edges are never deleted.
  expect(rows.map(({ name }) => name)).toEqual(['tunnel_log.edge_id', 'users.plan']);
});
