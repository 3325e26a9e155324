// The database cluster, which is the folder with the database's files. Created once under a temporary name, and moved into place when
// complete.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { randomToken, type Secret, syncFolderSync } from '@tunnel/runtime';
import { DATABASE_NAME, DATABASE_USER, markPassword, passwordClause, runStatements } from './access.ts';
import { PASSWORD_MARK, POSTGRES_BOUNDS, type PostgresFiles } from './postgres-files.ts';
import { type Programs, runProgram } from './programs.ts';
import { giveTo } from './run-as.ts';

/** Major version of the included PostgreSQL packages, which cannot open a cluster of a different major version. */
export const MAJOR_VERSION = '18';

// The built-in locale provider sorts the same way on every system, regardless of the installed locales.
const INIT_ARGS = [
  '--username=postgres',
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  // The access rules are in a file outside the cluster, so the rules in the cluster reject all connections.
  '--auth-local=reject',
  '--auth-host=reject',
  '--no-instructions',
  '--no-sync',
];

const firstStatements = (password: Secret): string[] => [
  `create role ${DATABASE_USER} login ${passwordClause(password)}`,
  `create database ${DATABASE_NAME} owner ${DATABASE_USER}`,
];

const UNFINISHED = 'postgres.unfinished.';

export const openCluster = async (files: PostgresFiles, programs: Programs, password: Secret): Promise<void> => {
  for (const name of readdirSync(files.dataDir).filter((entry) => entry.startsWith(UNFINISHED))) {
    rmSync(join(files.dataDir, name), { recursive: true, force: true, maxRetries: 5 });
  }
  if (!existsSync(join(files.cluster, 'PG_VERSION'))) return makeCluster(files, programs, password);
  const version = readFileSync(join(files.cluster, 'PG_VERSION'), 'utf8').trim();
  if (version !== MAJOR_VERSION) {
    throw new Error(
      `the database was created by PostgreSQL ${version}, but this version includes PostgreSQL ${MAJOR_VERSION}`,
    );
  }
};

const makeCluster = async (files: PostgresFiles, programs: Programs, password: Secret): Promise<void> => {
  const { initdb } = programs.binaries;
  // The name is random, because the initdb of a killed process keeps running for a moment and then removes its folder.
  const unfinished = join(files.dataDir, `${UNFINISHED}${randomToken(6)}`);
  mkdirSync(unfinished, { mode: 0o700 });
  giveTo(unfinished, programs.user);
  const at = ['-D', unfinished];
  const run = (args: readonly string[]): Promise<void> =>
    runProgram(programs, initdb, args, { input: '', timeoutMs: POSTGRES_BOUNDS.INIT_TIMEOUT_MS });
  await run([...at, ...INIT_ARGS]);
  await runStatements(programs, unfinished, { statements: firstStatements(password), settings: ['fsync=off'] });
  markPassword(join(unfinished, PASSWORD_MARK), programs, password);
  // A single sync at the end replaces a sync per file, which would take up to a minute on a busy disk.
  await run([...at, '--sync-only', `--sync-method=${process.platform === 'linux' ? 'syncfs' : 'fsync'}`]);
  renameSync(unfinished, files.cluster);
  syncFolderSync(files.dataDir);
};
