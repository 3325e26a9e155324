// Resets a test database after use: deletes its rows and restarts its sequences.
import type { Secret } from '@tunnel/runtime';
import pg from 'pg';

/** Tables with rows written by the migrations. Add every further table that a migration fills, or tests would miss its rows. */
const KEPT = `('kysely_migration', 'kysely_migration_lock', 'schema_notes')`;

/**
 * Size from which a table's database is dropped instead of reused, in bytes. Deleted rows stay in the files until the next vacuum and
 * would slow down later tests.
 */
const LARGE_BYTES = 2 ** 20;

/**
 * Query for a hash of everything besides rows that a test may have changed: tables, columns, constraints, triggers, functions, settings,
 * migrations.
 */
const FINGERPRINT = `
  select md5(concat_ws('/',
    (select string_agg(concat_ws(':', oid, relname, relnatts), ',' order by oid) from pg_class where relnamespace = 'public'::regnamespace),
    (select string_agg(concat_ws(':', attrelid, attnum, attname, atttypid, attnotnull), ',' order by attrelid, attnum)
      from pg_attribute where attrelid in (select oid from pg_class where relnamespace = 'public'::regnamespace)),
    (select string_agg(concat_ws(':', oid, convalidated), ',' order by oid) from pg_constraint),
    (select string_agg(concat_ws(':', oid, tgenabled), ',' order by oid) from pg_trigger),
    (select string_agg(concat_ws(':', oid, md5(prosrc)), ',' order by oid) from pg_proc where pronamespace = 'public'::regnamespace),
    (select count(*) from pg_db_role_setting where setdatabase = (select oid from pg_database where datname = current_database())),
    (select string_agg(name, ',' order by name) from kysely_migration),
    (select string_agg(concat_ws(':', migration, oldest_version), ',' order by migration) from schema_notes))) as print`;

const CUT_OTHERS = `
  select bool_and(pg_terminate_backend(pid, 5000)) as done from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`;

const SIZE = `
  select coalesce(max(pg_relation_size(oid)), 0)::int as bytes from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`;

/**
 * Deletes rows in the role of a replica: no trigger rejects the deletion, and foreign keys require no order. Only a superuser may take
 * this role.
 */
const EMPTY = `
  do $$
  declare
    one record;
  begin
    set local session_replication_role = replica;
    for one in
      select oid::regclass as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and relname not in ${KEPT} and pg_relation_size(oid) > 0
    loop
      execute format('delete from %s', one.name);
    end loop;
    perform setval(seqrelid, seqstart, false) from pg_sequence;
  end $$`;

export const fingerprintOf = (url: Secret): Promise<string> => withClient(url, printOf);

/** Resets a database. Returns false if a reset is impossible and the database must be dropped. */
export const makeAsNew = (url: Secret, print: string): Promise<boolean> =>
  withClient(url, async (client) => {
    const cut = await client.query<{ done: boolean | null }>(CUT_OTHERS);
    if (cut.rows[0]?.done === false) return false;
    if ((await printOf(client)) !== print) return false;
    const size = await client.query<{ bytes: number }>(SIZE);
    if ((size.rows[0]?.bytes ?? 0) > LARGE_BYTES) return false;
    await client.query(EMPTY);
    return true;
  }).catch(() => false);

const printOf = async (client: pg.Client): Promise<string> => {
  const { rows } = await client.query<{ print: string }>(FINGERPRINT);
  return rows[0]?.print ?? '';
};

/** Opens a connection for a single use, because an open connection would prevent dropping the database. */
const withClient = async <Result>(url: Secret, use: (client: pg.Client) => Promise<Result>): Promise<Result> => {
  const client = new pg.Client({ connectionString: url.reveal() });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
};
