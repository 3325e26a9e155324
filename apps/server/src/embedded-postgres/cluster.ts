// The cluster: the files of the database. Made once, aside, and moved into place when it is whole.
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { randomToken } from '@tunnel/runtime';
import { POSTGRES_BOUNDS, type PostgresFiles } from './postgres-files.ts';
import { type Programs, runProgram } from './programs.ts';
import { giveTo } from './run-as.ts';

/** Owns the database and nothing else: no superuser, so no query of ours can touch a file or run a program. */
export const DATABASE_USER = 'tunnel';
export const DATABASE_NAME = 'tunnel';

/** Of the packages we bring. A cluster of another major version cannot be opened by it. */
const MAJOR_VERSION = '18';

// The provider of PostgreSQL itself: the same order on every system, whatever locales are installed there.
const INIT_ARGS = [
  '--username=postgres',
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--auth-local=trust',
  '--auth-host=reject',
  '--no-instructions',
  '--no-sync',
];

const FIRST_STATEMENTS = [
  `create role ${DATABASE_USER} login`,
  `create database ${DATABASE_NAME} owner ${DATABASE_USER}`,
];

const UNFINISHED = 'postgres.unfinished.';

export const openCluster = async (files: PostgresFiles, programs: Programs): Promise<void> => {
  for (const name of readdirSync(files.dataDir).filter((entry) => entry.startsWith(UNFINISHED))) {
    rmSync(join(files.dataDir, name), { recursive: true, force: true, maxRetries: 5 });
  }
  if (!existsSync(join(files.cluster, 'PG_VERSION'))) return makeCluster(files, programs);
  const version = readFileSync(join(files.cluster, 'PG_VERSION'), 'utf8').trim();
  if (version !== MAJOR_VERSION) {
    throw new Error(`it was made by PostgreSQL ${version}, and this version brings PostgreSQL ${MAJOR_VERSION}`);
  }
};

const makeCluster = async (files: PostgresFiles, programs: Programs): Promise<void> => {
  const { initdb, postgres } = programs.binaries;
  // A name of its own: the initdb of a process that was killed lives on for a moment, and cleans up after itself.
  const unfinished = join(files.dataDir, `${UNFINISHED}${randomToken(6)}`);
  mkdirSync(unfinished, { mode: 0o700 });
  giveTo(unfinished, programs.user);
  const at = ['-D', unfinished];
  const run = (program: string, args: readonly string[], input = ''): Promise<void> =>
    runProgram(programs, program, args, { input, timeoutMs: POSTGRES_BOUNDS.INIT_TIMEOUT_MS });
  await run(initdb, [...at, ...INIT_ARGS]);
  // The server without a postmaster, which reads statements that end with an empty line.
  const alone = ['--single', '-j', ...at, '-c', 'fsync=off', '-c', 'log_checkpoints=off', 'template1'];
  await run(postgres, alone, FIRST_STATEMENTS.map((statement) => `${statement};\n\n`).join(''));
  // On the disk at once, at the end: file by file, and while they are made, a busy disk takes up to a minute for it.
  await run(initdb, [...at, '--sync-only', `--sync-method=${process.platform === 'linux' ? 'syncfs' : 'fsync'}`]);
  renameSync(unfinished, files.cluster);
  syncFolder(files.dataDir);
};

const syncFolder = (folder: string): void => {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};
