// The migrated database that the databases of tests are copies of. Made once for a test run.
import { randomBytes } from 'node:crypto';
import { createLogger, Secret } from '@tunnel/runtime';
import pg from 'pg';
import { Database } from './database.ts';
import { migrate } from './migrate.ts';

const DATABASE_PREFIX = 'tunnel_test_';

/** The same server, another database. */
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
