// A database cluster with its tables, as the first start makes it, made once for all tests: to copy it takes a tenth of the time.
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

/** A data directory for each version of PostgreSQL and of the tables; null: there is none for this machine. */
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
    await migratePatiently({ url, logger });
    await postgres.stop();
    renameSync(unfinished, dir);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Another run was quicker. Else nothing is lost but time: whoever needs a cluster makes one.
    if (!existsSync(dir)) process.stderr.write(`no template of the database: ${String(error)}\n`);
  }
};

/** Before the first start on it: a data directory whose cluster is there. */
export const copyDatabase = async (dataDir: string): Promise<void> => {
  const dir = templateDir();
  if (dir === null || !existsSync(dir)) return;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  await cp(join(dir, 'postgres'), join(dataDir, 'postgres'), { recursive: true, mode: 0 });
  // Else the role would be given a new one at the start, which takes longer than the copy.
  mkdirSync(join(dataDir, 'postgres-support'), { recursive: true, mode: 0o755 });
  await cp(join(dir, 'postgres-support/password'), join(dataDir, 'postgres-support/password'));
};
