// A database for a test: migrated, empty and its own. The first ones of a worker are copies of a template that is made once for a test run;
// a database that a test has closed is emptied and given to a later test. Only for tests whose run has a server, such as *.db.test.ts.
import { randomBytes } from 'node:crypto';
import { createLogger, Secret } from '@tunnel/runtime';
import pg from 'pg';
import { inject } from 'vitest';
import { Database, type Db } from './database.ts';
import { migrate } from './migrate.ts';
import { fingerprintOf, makeAsNew } from './used-database.fixture.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** `pooler`: where tests reach their databases through; null: they go to the server itself. */
    testDatabase: { url: string; template: string; pooler?: string | null };
  }
}

export interface TestDatabase {
  readonly db: Db;
  readonly url: Secret;
  /** The same database without the pooler in between, if there is one. */
  readonly directUrl: Secret;
  readonly pool: pg.Pool;
  /** Closes the pool and gives the database back; connections of others to it are cut. */
  close(): Promise<void>;
}

export interface TestDatabaseOptions {
  /** Without tables. */
  readonly empty?: boolean;
  readonly connections?: number;
}

/** A hundred at once wait long for a connection on a busy machine; a platform in earnest would send them away. */
export const PATIENCE_MS = 60_000;

export const createTestDatabase = async (options: TestDatabaseOptions = {}): Promise<TestDatabase> => {
  const { url: serverUrl, template, pooler = null } = inject('testDatabase');
  const server = new Secret(serverUrl);
  const isMigrated = options.empty !== true;
  const name =
    (isMigrated ? unused.pop() : undefined) ?? (await copyOf(server, isMigrated ? template : 'template0', template));
  const directUrl = urlOf(server, name);
  const url = pooler === null ? directUrl : urlOf(new Secret(pooler), name);
  const logger = createLogger({ format: 'human', level: 'silent' });
  const database = new Database({ url, logger, connections: options.connections ?? 10, timeoutMs: PATIENCE_MS });
  return {
    db: database.db,
    url,
    directUrl,
    pool: database.pool,
    close: async () => {
      await database.close();
      if (
        isMigrated &&
        unused.length < UNUSED_MAX &&
        (await makeAsNew(directUrl, await fingerprintOfTemplate(server, template)))
      ) {
        unused.push(name);
      } else {
        await onServer(server, `drop database if exists ${name} with (force)`);
      }
    },
  };
};

/** Names of databases of this worker that are as new and that no test has. To copy the template costs 100 ms of the processor, to empty a used copy about 10. */
const unused: string[] = [];
const UNUSED_MAX = 8;

/** Its name begins with the template's, by which the end of the run finds it. */
const copyOf = async (server: Secret, source: string, template: string): Promise<string> => {
  const name = `${template}_${randomBytes(8).toString('hex')}`;
  await onServer(server, `create database ${name} template ${source}`);
  return name;
};

let templatePrint: Promise<string> | undefined;

const fingerprintOfTemplate = (server: Secret, template: string): Promise<string> =>
  (templatePrint ??= fingerprintOf(urlOf(server, template)));

/** The same server, another database. */
export const urlOf = (server: Secret, database: string): Secret => {
  const [address = '', query] = server.reveal().split('?');
  const renamed = address.replace(/^(\w+:\/\/[^/]*)(\/.*)?$/, `$1/${database}`);
  return new Secret(query === undefined ? renamed : `${renamed}?${query}`);
};

export const onServer = async (server: Secret, statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: server.reveal() });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
};

/** The migrated database that the databases of tests are copies of. Made once for a test run. */
export const makeTemplate = async (server: Secret): Promise<string> => {
  const template = `tunnel_test_${randomBytes(8).toString('hex')}`;
  await onServer(server, `create database ${template}`);
  const logger = createLogger({ format: 'human', level: 'silent' });
  const database = new Database({ url: urlOf(server, template), logger, connections: 2 });
  try {
    await migrate(database.db);
  } finally {
    await database.close();
  }
  return template;
};

/** Drops the template and the copies of it that are left. */
export const dropTemplate = async (server: Secret, template: string): Promise<void> => {
  const client = new pg.Client({ connectionString: server.reveal() });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      'select datname as name from pg_database where starts_with(datname, $1)',
      [template],
    );
    for (const { name } of rows) await client.query(`drop database if exists ${name} with (force)`);
  } finally {
    await client.end();
  }
};
