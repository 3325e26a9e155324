// A database cluster with its tables, as after a first start, created once for all tests. A copy takes a tenth of the time.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createLogger, systemClock } from '@tunnel/runtime';
import { migratePatiently } from '../../apps/platform/src/db/migrate.ts';
import { EmbeddedPostgres } from '../../apps/server/src/embedded-postgres/embedded-postgres.ts';
import { findPackage } from '../../apps/server/src/embedded-postgres/programs.ts';
import { ROOT } from '../repo/checkout.fixture.ts';

const MIGRATIONS = join(ROOT, 'apps/platform/src/db/migrations');

const hashOfMigrations = (): string => {
  const hash = createHash('sha256');
  for (const name of readdirSync(MIGRATIONS).sort()) hash.update(name).update(readFileSync(join(MIGRATIONS, name)));
  return hash.digest('hex').slice(0, 12);
};

/**
 * Returns the template directory for the current versions of PostgreSQL and of the tables, or null if this machine has no embedded
 * PostgreSQL.
 */
const templateDir = (): string | null => {
  const packageDir = findPackage();
  if (packageDir === undefined) return null;
  const { version } = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as { version: string };
  return join(ROOT, '.cache/database-template', `${version}-scram-${hashOfMigrations()}`);
};

export const makeDatabaseTemplate = async (): Promise<void> => {
  const dir = templateDir();
  if (dir === null || existsSync(dir)) return;
  mkdirSync(dirname(dir), { recursive: true });
  const unfinished = mkdtempSync(`${dir}.`);
  const logger = createLogger({ format: 'human', level: 'warn', stream: process.stderr });
  const postgres = new EmbeddedPostgres({
    dataDir: unfinished,
    logger,
    clock: systemClock,
    settings: { fsync: 'off' },
  });
  try {
    const { url } = await postgres.start();
    await migratePatiently({ url, logger }, { version: '0.0.0-dev' });
    await postgres.stop();
    renameSync(unfinished, dir);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // If the directory exists, a parallel run was faster. Otherwise only time is lost: each test creates its own cluster.
    if (!existsSync(dir)) process.stderr.write(`no template of the database: ${String(error)}\n`);
  }
};

/** Copies the cluster into a data directory, before its first start. */
export const copyDatabase = async (dataDir: string): Promise<void> => {
  const dir = templateDir();
  if (dir === null || !existsSync(dir)) return;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  await cp(join(dir, 'postgres'), join(dataDir, 'postgres'), { recursive: true, mode: 0 });
  // Without the password file, the start would set a new password for the role, which takes longer than the copy.
  mkdirSync(join(dataDir, 'postgres-support'), { recursive: true, mode: 0o755 });
  await cp(join(dir, 'postgres-support/password'), join(dataDir, 'postgres-support/password'));
};
