// Creates a separate, migrated, empty database for a test. The first databases of a worker are copies of a template created once per test
// run; a database closed by a test is emptied and given to a later test. Only for tests with a database server, such as *.db.test.ts.
import { randomBytes } from 'node:crypto';
import { createLogger, Secret } from '@tunnel/runtime';
import pg from 'pg';
import { inject } from 'vitest';
import { Database, type Db } from './database.ts';
import { migrate } from './migrate.ts';
import { fingerprintOf, makeAsNew } from './used-database.fixture.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** `pooler`: URL through which tests connect to their databases. null: tests connect to the server directly. */
    testDatabase: { url: string; template: string; pooler?: string | null };
  }
}

export interface TestDatabase {
  readonly db: Db;
  readonly url: Secret;
  /** URL of the same database without the pooler, if a pooler is used. */
  readonly directUrl: Secret;
  readonly pool: pg.Pool;
  /** Closes the pool and returns the database for reuse. Cuts any other connections to the database. */
  close(): Promise<void>;
}

export interface TestDatabaseOptions {
  /** True for a database without tables. */
  readonly empty?: boolean;
  readonly connections?: number;
}

/**
 * Maximum wait for a connection. A hundred concurrent requests wait long on a busy machine; a production platform would reject such
 * requests.
 */
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

/**
 * Names of this worker's databases that are reset and unused. Copying the template costs 100 ms of CPU time, emptying a used copy about
 * 10 ms.
 */
const unused: string[] = [];
const UNUSED_MAX = 8;

/** Creates a copy of a database. Its name begins with the template's name, so that the end of the run finds the copy. */
const copyOf = async (server: Secret, source: string, template: string): Promise<string> => {
  const name = `${template}_${randomBytes(8).toString('hex')}`;
  await onServer(server, `create database ${name} template ${source}`);
  return name;
};

let templatePrint: Promise<string> | undefined;

const fingerprintOfTemplate = (server: Secret, template: string): Promise<string> =>
  (templatePrint ??= fingerprintOf(urlOf(server, template)));

/** Returns the URL of another database on the same server. */
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

/** Version of the product in tests. No migration of a test database is unknown to it. */
export const TEST_VERSION = '0.0.0-dev';

/** Creates the migrated template of all test databases, once per test run. */
export const makeTemplate = async (server: Secret): Promise<string> => {
  const template = `tunnel_test_${randomBytes(8).toString('hex')}`;
  await onServer(server, `create database ${template}`);
  const logger = createLogger({ format: 'human', level: 'silent' });
  const database = new Database({ url: urlOf(server, template), logger, connections: 2 });
  try {
    await migrate(database.db, { version: TEST_VERSION });
  } finally {
    await database.close();
  }
  return template;
};

/** Drops the template and its remaining copies. */
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
