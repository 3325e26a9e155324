// A database for a test: fresh, migrated, its own. Only for tests named *.db.test.ts, whose run has a server.
import { createLogger, Secret } from '@tunnel/runtime';
import type pg from 'pg';
import { inject } from 'vitest';
import { Database, type Db } from './database.ts';
import { newDatabaseName, onServer, urlOf } from './test-template.fixture.ts';

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
