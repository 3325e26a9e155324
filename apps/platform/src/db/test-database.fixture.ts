// A database for a test: fresh, migrated, its own, a copy of one that is made once for a test run. Only for tests named
// *.db.test.ts, whose run has a server.
import { randomBytes } from 'node:crypto';
import { createLogger, Secret } from '@tunnel/runtime';
import pg from 'pg';
import { inject } from 'vitest';
import { Database, type Db } from './database.ts';
import { migrate } from './migrate.ts';

declare module 'vitest' {
  interface ProvidedContext {
    testDatabase: { url: string; template: string };
  }
}

export interface TestDatabase {
  readonly db: Db;
  readonly url: Secret;
  readonly pool: pg.Pool;
  /** Closes the pool and drops the database; connections of others to it are cut. */
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
  const { url: serverUrl, template } = inject('testDatabase');
  const server = new Secret(serverUrl);
  const name = newDatabaseName();
  await onServer(server, `create database ${name} template ${options.empty === true ? 'template0' : template}`);
  const url = urlOf(server, name);
  const logger = createLogger({ format: 'human', level: 'silent' });
  const database = new Database({ url, logger, connections: options.connections ?? 10, timeoutMs: PATIENCE_MS });
  return {
    db: database.db,
    url,
    pool: database.pool,
    close: async () => {
      await database.close();
      await onServer(server, `drop database if exists ${name} with (force)`);
    },
  };
};

const DATABASE_PREFIX = 'tunnel_test_';

/**
 * The migrated database that the databases of tests are copies of. Made once for a test run. The same server, another
 * database.
 */
export const urlOf = (server: Secret, database: string): Secret => {
  const [address = '', query] = server.reveal().split('?');
  const renamed = address.replace(/^(\w+:\/\/[^/]*)(\/.*)?$/, `$1/${database}`);
  return new Secret(query === undefined ? renamed : `${renamed}?${query}`);
};

export const newDatabaseName = (): string => `${DATABASE_PREFIX}${randomBytes(8).toString('hex')}`;

export const onServer = async (server: Secret, statement: string): Promise<void> => {
  const client = new pg.Client({ connectionString: server.reveal() });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
};

export const makeTemplate = async (server: Secret): Promise<string> => {
  const template = newDatabaseName();
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

export const dropTemplate = (server: Secret, template: string): Promise<void> =>
  onServer(server, `drop database if exists ${template} with (force)`);
