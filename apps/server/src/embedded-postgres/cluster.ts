// The cluster: the files of the database. Made once, aside, and moved into place when it is whole.
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { POSTGRES_BOUNDS } from './postgres-bounds.ts';
import type { PostgresFiles } from './postgres-files.ts';
import { type Programs, runProgram } from './run-program.ts';

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
];

const FIRST_STATEMENTS = [
  `create role ${DATABASE_USER} login`,
  `create database ${DATABASE_NAME} owner ${DATABASE_USER}`,
  `revoke connect on database ${DATABASE_NAME} from public`,
];

export const openCluster = async (files: PostgresFiles, programs: Programs): Promise<void> => {
  rmSync(files.unfinished, { recursive: true, force: true });
  if (!existsSync(join(files.cluster, 'PG_VERSION'))) return makeCluster(files, programs);
  const version = readFileSync(join(files.cluster, 'PG_VERSION'), 'utf8').trim();
  if (version !== MAJOR_VERSION) {
    throw new Error(`it was made by PostgreSQL ${version}, and this version brings PostgreSQL ${MAJOR_VERSION}`);
  }
};

const makeCluster = async (files: PostgresFiles, programs: Programs): Promise<void> => {
  const { initdb, postgres } = programs.binaries;
  const timeoutMs = POSTGRES_BOUNDS.INIT_TIMEOUT_MS;
  await runProgram(programs, initdb, ['-D', files.unfinished, ...INIT_ARGS], { input: '', timeoutMs });
  // The server without a postmaster, which reads statements that end with an empty line.
  const alone = ['--single', '-j', '-D', files.unfinished, '-c', 'log_checkpoints=off', 'template1'];
  const input = FIRST_STATEMENTS.map((statement) => `${statement};\n\n`).join('');
  await runProgram(programs, postgres, alone, { input, timeoutMs });
  renameSync(files.unfinished, files.cluster);
};
