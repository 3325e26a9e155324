// Access rules of the embedded database: a single role can connect, through the Unix socket with a generated password. The superuser is
// used only to run the first statements of a cluster and to set the password, both without a server that accepts connections.
import { rmSync, writeFileSync } from 'node:fs';
import { ensureSecretFile, type Secret, sha256Hex } from '@tunnel/runtime';
import { type LogMode, logSettings, readMark, writeMark } from './log-mode.ts';
import { POSTGRES_BOUNDS, type PostgresFiles } from './postgres-files.ts';
import { type Programs, runProgram } from './programs.ts';

/** Role that owns the database. The role is not a superuser, so that no query can access files or run programs. */
export const DATABASE_USER = 'tunnel';
export const DATABASE_NAME = 'tunnel';

/**
 * Content of pg_hba.conf; PostgreSQL applies the first matching line. The permissions of the socket's folder already keep most users out;
 * users with access to the folder still need the password.
 */
const ACCESS_RULES = `# Rewritten at every start.
local ${DATABASE_NAME} ${DATABASE_USER} scram-sha-256
local all all reject
host all all all reject
`;

/**
 * Writes the access rules to a file outside the cluster, so that the user of the database server cannot change the rules, and so that
 * existing clusters need no change.
 */
export const writeAccessRules = ({ access }: PostgresFiles): void => {
  rmSync(access, { force: true });
  writeFileSync(access, ACCESS_RULES, { mode: 0o644, flag: 'wx' });
};

export const ensurePassword = ({ password }: PostgresFiles): Secret => {
  const secret = ensureSecretFile(password);
  if (secret.reveal() === '')
    throw new Error(`the password file is empty: remove ${password} to create a new password`);
  return secret;
};

/**
 * Sets the role's password to our password if the cluster has a different password. Clusters of older versions have no password, and
 * clusters restored from a copy have an earlier password. No server may run on the cluster meanwhile.
 */
export const givePassword = async (
  files: PostgresFiles,
  programs: Programs,
  password: Secret,
  log: LogMode,
): Promise<void> => {
  if (readMark(files.passwordMark) === sha256Hex(password.reveal())) return;
  const statements = [`alter role ${DATABASE_USER} ${passwordClause(password)}`];
  await runStatements(programs, files.cluster, { statements, settings: settingList(log) });
  markPassword(files.passwordMark, programs, password);
};

/**
 * Functions that the role can call in addition to everyone's: to begin and end the copy of a running database, and to end a segment of the
 * log. None of them reads a file or returns data. The names and arguments are those of PostgreSQL 15 and newer.
 */
const BACKUP_FUNCTIONS = ['pg_backup_start(text, boolean)', 'pg_backup_stop(boolean)', 'pg_switch_wal()'];

/**
 * Allows the role to take backups, once per cluster and before the server starts, because only a superuser can. Clusters of older versions
 * get the permission at their first start with backups.
 */
export const grantBackups = async (files: PostgresFiles, programs: Programs, log: LogMode): Promise<void> => {
  const wanted = BACKUP_FUNCTIONS.join(' ');
  if (log === 'minimal' || readMark(files.grantsMark) === wanted) return;
  const statements = [`grant execute on function ${BACKUP_FUNCTIONS.join(', ')} to ${DATABASE_USER}`];
  // Permissions on functions belong to a database, and the role can connect to only one.
  await runStatements(programs, files.cluster, { statements, settings: settingList(log), database: DATABASE_NAME });
  writeMark(files.grantsMark, wanted, programs.user);
};

const settingList = (log: LogMode): string[] =>
  Object.entries({ ...logSettings(log), max_wal_senders: '0' }).map(([name, value]) => `${name}=${value}`);

/**
 * Returns the password clause of an SQL statement. Throws an error unless the password consists only of letters, digits, hyphens and
 * underscores, so that quoting is safe. PostgreSQL stores the password as scram-sha-256, because `runStatements` overrides the settings
 * file.
 */
export const passwordClause = (password: Secret): string => {
  const text = password.reveal();
  if (!/^[\w-]+$/.test(text)) throw new Error('the password file contains invalid characters');
  return `password '${text}'`;
};

export const markPassword = (mark: string, { user }: Programs, password: Secret): void =>
  writeMark(mark, sha256Hex(password.reveal()), user);

interface Statements {
  readonly statements: readonly string[];
  /** Settings for this run only. */
  readonly settings?: readonly string[];
  /** Database of the statements. Roles belong to all databases, so statements about roles can run in any. */
  readonly database?: string;
}

/** Runs statements as the superuser in PostgreSQL's single-user mode, which accepts no connections. */
export const runStatements = (
  programs: Programs,
  cluster: string,
  { statements, settings = [], database = 'template1' }: Statements,
): Promise<void> => {
  // A failed statement ends the program instead of being skipped. The log does not quote the statement, because it contains the password.
  const strict = ['exit_on_error=on', 'log_min_error_statement=panic'];
  const all = ['password_encryption=scram-sha-256', 'log_checkpoints=off', ...strict, ...settings];
  const args = ['--single', '-j', '-D', cluster, ...all.flatMap((setting) => ['-c', setting]), database];
  // With the option -j of `postgres`, an empty line ends a statement.
  const input = statements.map((statement) => `${statement};\n\n`).join('');
  return runProgram(programs, programs.binaries.postgres, args, { input, timeoutMs: POSTGRES_BOUNDS.INIT_TIMEOUT_MS });
};
