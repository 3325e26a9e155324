// A PostgreSQL server on 127.0.0.1:5432 with an empty database for the chart. Loaded as a bundle, because the server's code is TypeScript.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onServer } from '../../../../apps/platform/src/db/test-database.fixture.ts';
import { EmbeddedPostgres } from '../../../../apps/server/src/embedded-postgres/embedded-postgres.ts';
import { createLogger, Secret, systemClock } from '../../../../packages/runtime/src/index.ts';

export async function startDatabase() {
  const dataDir = mkdtempSync(join(tmpdir(), 'tunnel-helm-'));
  const access = join(dataDir, 'access.conf');
  writeFileSync(access, 'local all all trust\nhost all all 127.0.0.1/32 trust\n', { mode: 0o644 });
  const postgres = new EmbeddedPostgres({
    dataDir,
    logger: createLogger({ format: 'human', level: 'silent' }),
    clock: systemClock,
    settings: { fsync: 'off', listen_addresses: '127.0.0.1', hba_file: access },
  });
  await postgres.start();
  const makeUrl = async (name) => {
    await onServer(new Secret('postgres://postgres@127.0.0.1/postgres'), `create database ${name}`);
    return `postgres://postgres@127.0.0.1:5432/${name}`;
  };
  const close = async () => {
    await postgres.stop();
    rmSync(dataDir, { recursive: true, force: true });
  };
  return { makeUrl, close };
}
