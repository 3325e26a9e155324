// Who is let into the embedded database: one role, by its socket and a generated password. The superuser is for the first statements of a
// cluster and for the password, both without a server that anybody could connect to.
import { chownSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { ensureSecretFile, type Secret, sha256Hex } from '@tunnel/runtime';
import { POSTGRES_BOUNDS, type PostgresFiles } from './postgres-files.ts';
import { type Programs, runProgram } from './programs.ts';

/** Owns the database and nothing else: no superuser, so no query of ours can touch a file or run a program. */
export const DATABASE_USER = 'tunnel';
export const DATABASE_NAME = 'tunnel';

/** The first line that fits counts. The folder of the socket keeps most others away; a user that may enter it meets this. */
const ACCESS_RULES = `# Rewritten at every start.
local ${DATABASE_NAME} ${DATABASE_USER} scram-sha-256
local all all reject
host all all all reject
`;

/** Beside the cluster and not in it: the user that the server runs as cannot change it, and a cluster of before needs no change. */
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
 * Gives the role of this cluster our password unless it has it: a cluster of before knows none, and one that was put back from a copy
 * knows another. No server may run on it meanwhile.
 */
export const givePassword = async (files: PostgresFiles, programs: Programs, password: Secret): Promise<void> => {
  if (markIn(files.passwordMark) === sha256Hex(password.reveal())) return;
  await runStatements(programs, files.cluster, [`alter role ${DATABASE_USER} ${passwordClause(password)}`]);
  markPassword(files.passwordMark, programs, password);
};

/** It has letters, digits, hyphens and underscores alone. Kept as scram-sha-256, whatever a file of settings says. */
export const passwordClause = (password: Secret): string => {
  const text = password.reveal();
  if (!/^[\w-]+$/.test(text)) throw new Error('the password file contains invalid characters');
  return `password '${text}'`;
};

export const markPassword = (mark: string, { user }: Programs, password: Secret): void => {
  // Never through a link that the user of the server may have put there.
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

/** As the superuser, by the server without a postmaster, which nobody can connect to. `settings`: of this run alone. */
export const runStatements = (
  programs: Programs,
  cluster: string,
  statements: readonly string[],
  settings: readonly string[] = [],
): Promise<void> => {
  // One that is refused ends the program instead of being passed over; and is not quoted, because it holds the password.
  const strict = ['exit_on_error=on', 'log_min_error_statement=panic'];
  const all = ['password_encryption=scram-sha-256', 'log_checkpoints=off', ...strict, ...settings];
  const args = ['--single', '-j', '-D', cluster, ...all.flatMap((setting) => ['-c', setting]), 'template1'];
  // It reads statements that end with an empty line.
  const input = statements.map((statement) => `${statement};\n\n`).join('');
  return runProgram(programs, programs.binaries.postgres, args, { input, timeoutMs: POSTGRES_BOUNDS.INIT_TIMEOUT_MS });
};
