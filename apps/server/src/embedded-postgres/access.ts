// Access rules of the embedded database: a single role can connect, through the Unix socket with a generated password. The superuser is
// used only to run the first statements of a cluster and to set the password, both without a server that accepts connections.
import { chownSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { ensureSecretFile, type Secret, sha256Hex } from '@tunnel/runtime';
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
export const givePassword = async (files: PostgresFiles, programs: Programs, password: Secret): Promise<void> => {
  if (markIn(files.passwordMark) === sha256Hex(password.reveal())) return;
  await runStatements(programs, files.cluster, [`alter role ${DATABASE_USER} ${passwordClause(password)}`]);
  markPassword(files.passwordMark, programs, password);
};

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

export const markPassword = (mark: string, { user }: Programs, password: Secret): void => {
  // The file with the hash is removed first, so that the write never follows a symbolic link created by the user of the database server.
  rmSync(mark, { force: true });
  writeFileSync(mark, `${sha256Hex(password.reveal())}\n`, { mode: 0o600, flag: 'wx' });
  if (process.getuid?.() === 0) chownSync(mark, user.uid, user.gid);
};

const markIn = (mark: string): string | null => {
  try {
    return readFileSync(mark, 'utf8').trim();
  } catch {
    return null;
  }
};

/** Runs statements as the superuser in PostgreSQL's single-user mode, which accepts no connections. `settings` apply to this run only. */
export const runStatements = (
  programs: Programs,
  cluster: string,
  statements: readonly string[],
  settings: readonly string[] = [],
): Promise<void> => {
  // A failed statement ends the program instead of being skipped. The log does not quote the statement, because it contains the password.
  const strict = ['exit_on_error=on', 'log_min_error_statement=panic'];
  const all = ['password_encryption=scram-sha-256', 'log_checkpoints=off', ...strict, ...settings];
  const args = ['--single', '-j', '-D', cluster, ...all.flatMap((setting) => ['-c', setting]), 'template1'];
  // With the option -j, an empty line ends a statement.
  const input = statements.map((statement) => `${statement};\n\n`).join('');
  return runProgram(programs, programs.binaries.postgres, args, { input, timeoutMs: POSTGRES_BOUNDS.INIT_TIMEOUT_MS });
};
