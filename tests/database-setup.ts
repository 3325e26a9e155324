// Runs before tests that need a database: starts a single server for the run, and creates a migrated template that each test copies.
// TEST_DATABASE_URL names an existing server to use instead; its user must be allowed to create databases. The value `none` starts no
// server, for tests without a database. TEST_POSTGRES_PACKAGE is the folder of an npm package with a different PostgreSQL than the
// installed version. TEST_PGBOUNCER is a PgBouncer program through which the tests then reach their databases.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import type { TestProject } from 'vitest/node';
import { dropTemplate, makeTemplate } from '../apps/platform/src/db/test-database.fixture.ts';
import { EmbeddedPostgres } from '../apps/server/src/embedded-postgres/embedded-postgres.ts';
import { OtherPostgres } from './other-postgres.fixture.ts';
import { PgBouncer } from './pgbouncer.fixture.ts';
import { openToAll, superuserUrl } from './superuser.fixture.ts';

// Settings without durability, because no data of a test run has to survive a power failure.
const FAST_SETTINGS = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '200' };

export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  if (process.env['TEST_DATABASE_URL'] === 'none') return async () => {};
  const server = await openServer();
  try {
    const template = await makeTemplate(server.url);
    const program = process.env['TEST_PGBOUNCER'] ?? '';
    const pooler = program === '' ? null : await PgBouncer.start(program, server.url);
    project.provide('testDatabase', { url: server.url.reveal(), template, pooler: pooler?.url.reveal() ?? null });
    return async () => {
      await pooler?.close();
      await dropTemplate(server.url, template);
      await server.close();
    };
  } catch (error) {
    await server.close();
    throw error;
  }
};

const openServer = async (): Promise<{ url: Secret; close(): Promise<void> }> => {
  const given = process.env['TEST_DATABASE_URL'];
  if (given !== undefined && given !== '') return { url: new Secret(given), close: async () => {} };
  const otherPackage = process.env['TEST_POSTGRES_PACKAGE'];
  if (otherPackage !== undefined) {
    const other = await OtherPostgres.start(otherPackage, FAST_SETTINGS);
    return { url: new Secret(other.url), close: () => other.close() };
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'tunnel-database-'));
  const logger = createLogger({ format: 'human', level: 'warn', stream: process.stderr });
  const settings = { ...FAST_SETTINGS, hba_file: openToAll(dataDir) };
  const postgres = new EmbeddedPostgres({ dataDir, logger, clock: systemClock, settings });
  const close = async (): Promise<void> => {
    await postgres.stop();
    rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    const { socketFolder } = await postgres.start();
    return { url: superuserUrl(socketFolder), close };
  } catch (error) {
    await close();
    throw error;
  }
};
