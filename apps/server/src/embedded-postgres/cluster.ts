// The cluster: the files of the database. Made once, aside, and moved into place when it is whole.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { randomToken, type Secret, syncFolderSync } from '@tunnel/runtime';
import { DATABASE_NAME, DATABASE_USER, markPassword, passwordClause, runStatements } from './access.ts';
import { PASSWORD_MARK, POSTGRES_BOUNDS, type PostgresFiles } from './postgres-files.ts';
import { type Programs, runProgram } from './programs.ts';
import { giveTo } from './run-as.ts';

/** Of the packages we bring. A cluster of another major version cannot be opened by it. */
const MAJOR_VERSION = '18';

// The provider of PostgreSQL itself: the same order on every system, whatever locales are installed there.
const INIT_ARGS = [
  '--username=postgres',
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  // Who may log in is said beside the cluster, not in it.
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
  // A name of its own: the initdb of a process that was killed lives on for a moment, and cleans up after itself.
  const unfinished = join(files.dataDir, `${UNFINISHED}${randomToken(6)}`);
  mkdirSync(unfinished, { mode: 0o700 });
  giveTo(unfinished, programs.user);
  const at = ['-D', unfinished];
  const run = (args: readonly string[]): Promise<void> =>
    runProgram(programs, initdb, args, { input: '', timeoutMs: POSTGRES_BOUNDS.INIT_TIMEOUT_MS });
  await run([...at, ...INIT_ARGS]);
  await runStatements(programs, unfinished, firstStatements(password), ['fsync=off']);
  markPassword(join(unfinished, PASSWORD_MARK), programs, password);
  // On the disk at once, at the end: file by file, and while they are made, a busy disk takes up to a minute for it.
  await run([...at, '--sync-only', `--sync-method=${process.platform === 'linux' ? 'syncfs' : 'fsync'}`]);
  renameSync(unfinished, files.cluster);
  syncFolderSync(files.dataDir);
};
