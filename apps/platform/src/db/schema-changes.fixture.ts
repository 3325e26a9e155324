// Observes what a migration changes: parts of existing tables that older versions could miss, and tables locked for long. Reads
// PostgreSQL's catalog before and after the migration, so that the form of its statements does not matter.
import { sql, type Transaction } from 'kysely';
import type { SchemaMigration } from './migrations/schema-migration.ts';
import type { Schema } from './schema.ts';

export interface SchemaChanges {
  /** Changes after which statements of older versions can fail. */
  readonly narrowings: readonly string[];
  /** Existing tables that are locked for a time that grows with their number of rows. */
  readonly longLocks: readonly string[];
}

export const observe = async (trx: Transaction<Schema>, up: SchemaMigration['up']): Promise<SchemaChanges> => {
  const before = await readCatalog(trx);
  const writtenBefore = await writtenTables(trx);
  await up(trx as never);
  const after = await readCatalog(trx);
  const writtenAfter = await writtenTables(trx);
  const isWritten = (table: string): boolean => writtenAfter.has(table) && !writtenBefore.has(table);
  return {
    narrowings: [
      ...[...before.tables.keys()]
        .filter((table) => !after.tables.has(table))
        .map((table) => `${table} no longer exists`),
      ...goneOrChangedColumns(before, after),
      ...demandingColumns(before, after),
      ...narrowerConstraints(before, after),
      ...uniqueIndexes(before, after),
    ].toSorted(),
    longLocks: [...before.tables.keys()]
      .filter((table) => isWritten(table) || isScanned(table, before, after))
      .toSorted(),
  };
};

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly has_default: boolean;
}

interface Constraint {
  readonly id: number;
  readonly table: string;
  readonly name: string;
  /** c: check, f: foreign key, p: primary key, u: unique, x: exclusion. */
  readonly kind: string;
  readonly validated: boolean;
  readonly definition: string;
  readonly columns: readonly string[] | null;
}

interface Index {
  readonly id: number;
  readonly table: string;
  readonly is_unique: boolean;
  /** Without the name of the index. */
  readonly definition: string;
  /** null stands for an expression. */
  readonly columns: readonly (string | null)[];
}

interface Catalog {
  /** The file of each table, by name. A table that is rewritten gets a new file. */
  readonly tables: ReadonlyMap<string, number>;
  readonly columns: ReadonlyMap<string, Column>;
  readonly constraints: readonly Constraint[];
  readonly indexes: readonly Index[];
}

const OURS = sql`relnamespace = 'public'::regnamespace`;

const readCatalog = async (trx: Transaction<Schema>): Promise<Catalog> => {
  const tables = await sql<{ name: string; file: number }>`
    select relname as name, relfilenode::int8 as file from pg_class where ${OURS} and relkind in ('r', 'p', 'v', 'm')`.execute(
    trx,
  );
  const columns = await sql<Column>`
    select relname as table, attname as name, format_type(atttypid, atttypmod) as type, attnotnull as required,
      atthasdef or attidentity <> '' as has_default
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where ${OURS} and relkind in ('r', 'p', 'v', 'm') and attnum > 0 and not attisdropped`.execute(trx);
  const constraints = await sql<Constraint>`
    select pg_constraint.oid::int8 as id, relname as table, conname as name, contype as kind, convalidated as validated,
      pg_get_constraintdef(pg_constraint.oid) as definition,
      (select json_agg(attname) from pg_attribute where attrelid = conrelid and attnum = any (conkey)) as columns
    from pg_constraint join pg_class on pg_class.oid = conrelid
    where ${OURS} and contype in ('c', 'f', 'p', 'u', 'x')`.execute(trx);
  const indexes = await sql<Index>`
    select indexrelid::int8 as id, pg_class.relname as table, indisunique as is_unique,
      regexp_replace(pg_get_indexdef(indexrelid), ' INDEX \\S+ ON ', ' INDEX ON ') as definition,
      (select json_agg((select attname from pg_attribute where attrelid = indrelid and attnum = key and key > 0)) from unnest(indkey) key)
        as columns
    from pg_index join pg_class on pg_class.oid = indrelid where ${OURS}`.execute(trx);
  return {
    tables: new Map(tables.rows.map(({ name, file }) => [name, file])),
    columns: new Map(columns.rows.map((column) => [`${column.table}.${column.name}`, column])),
    constraints: constraints.rows,
    indexes: indexes.rows,
  };
};

/** Tables that the transaction has locked for indexes (ShareLock) or for changes of rows (RowExclusiveLock). */
const writtenTables = async (trx: Transaction<Schema>): Promise<ReadonlySet<string>> => {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_locks join pg_class on pg_class.oid = relation
    where pid = pg_backend_pid() and mode in ('ShareLock', 'RowExclusiveLock')`.execute(trx);
  return new Set(rows.map(({ name }) => name));
};

/** True if the table was rewritten, or if PostgreSQL has checked a new condition for all of its rows. */
const isScanned = (table: string, before: Catalog, after: Catalog): boolean => {
  if (after.tables.get(table) !== undefined && after.tables.get(table) !== before.tables.get(table)) return true;
  const known = new Set([...before.constraints, ...before.indexes].map(({ id }) => id));
  const isNew = (one: { id: number; table: string }): boolean => one.table === table && !known.has(one.id);
  if (after.indexes.some(isNew) || after.constraints.some((one) => isNew(one) && one.validated)) return true;
  return [...before.columns].some(
    ([key, column]) => column.table === table && !column.required && after.columns.get(key)?.required === true,
  );
};

const goneOrChangedColumns = (before: Catalog, after: Catalog): string[] =>
  [...before.columns].flatMap(([key, { table, type }]) => {
    const column = after.columns.get(key);
    if (!after.tables.has(table)) return [];
    if (column === undefined) return [`${key} no longer exists`];
    return isWider(type, column.type) ? [] : [`${key} changes from ${type} to ${column.type}`];
  });

/** True if every value of the old type is a value of the new type, and drivers read both types in the same way. */
const isWider = (from: string, to: string): boolean => {
  if (from === to || (from === 'integer' && to === 'bigint')) return true;
  const length = /^character varying\((\d+)\)$/.exec(from)?.[1];
  const wider = /^character varying\((\d+)\)$/.exec(to)?.[1];
  if (length === undefined) return from === 'character varying' && to === 'text';
  return ['text', 'character varying'].includes(to) || Number(wider ?? 0) >= Number(length);
};

/** Columns without which an insert, as older versions write it, fails. */
const demandingColumns = (before: Catalog, after: Catalog): string[] =>
  [...after.columns].flatMap(([key, { table, required, has_default }]) => {
    if (!before.tables.has(table) || !required) return [];
    const column = before.columns.get(key);
    if (column === undefined) return has_default ? [] : [`${key} is new, and requires a value`];
    if (!column.required) return [`${key} no longer allows null`];
    return column.has_default && !has_default ? [`${key} no longer has a default`] : [];
  });

/** New and stricter constraints of existing tables. A constraint only of new columns is met by null, which older versions leave there. */
const narrowerConstraints = (before: Catalog, after: Catalog): string[] => {
  const found: string[] = [];
  const nameOf = ({ table, name }: Constraint): string => `${table}: constraint ${name}`;
  const old = new Map(before.constraints.map((one) => [nameOf(one), one]));
  for (const one of after.constraints) {
    const previous = old.get(nameOf(one));
    if (!before.tables.has(one.table) || previous?.definition === one.definition) continue;
    if (previous === undefined && isMetByOldRows(one, before, after)) continue;
    if (previous !== undefined && allowsMore(previous.definition, one.definition)) continue;
    found.push(`${nameOf(one)} is new or stricter`);
  }
  return found;
};

const isMetByOldRows = (
  { table, columns }: { readonly table: string; readonly columns: readonly (string | null)[] | null },
  before: Catalog,
  after: Catalog,
): boolean =>
  (columns ?? [null]).every((name) => {
    const key = `${table}.${name}`;
    const column = after.columns.get(key);
    return column !== undefined && !before.columns.has(key) && !column.required && !column.has_default;
  });

/** True if both constraints are a list of allowed values for the same column, and all old values are in the new list. */
const allowsMore = (from: string, to: string): boolean => {
  const listOf = (definition: string): RegExpExecArray | null =>
    /^CHECK \(\((\w+) = ANY \(ARRAY\[(.*)\]\)\)\)$/.exec(definition);
  const [old, wider] = [listOf(from), listOf(to)];
  if (old === null || wider === null || old[1] !== wider[1]) return false;
  const values = new Set((wider[2] ?? '').split(', '));
  return (old[2] ?? '').split(', ').every((value) => values.has(value));
};

/** A new unique index rejects rows. Without a unique index, `on conflict` fails. Other indexes only matter for the speed. */
const uniqueIndexes = (before: Catalog, after: Catalog): string[] => {
  const missingIn = (these: Catalog, those: Catalog): readonly Index[] =>
    these.indexes.filter(
      ({ table, is_unique, definition }) =>
        is_unique &&
        before.tables.has(table) &&
        after.tables.has(table) &&
        !those.indexes.some((other) => other.definition === definition),
    );
  return [
    ...missingIn(before, after).map(({ definition }) => `${definition} no longer exists`),
    ...missingIn(after, before)
      .filter((index) => !isMetByOldRows(index, before, after))
      .map(({ definition }) => `${definition} is new`),
  ];
};
