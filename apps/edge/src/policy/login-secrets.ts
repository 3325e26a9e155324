// The secrets that seal logins: read from `login_secret_file`, or a secret generated once in the data directory.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigProblem, readSecretText } from '@tunnel/config/layers';
import { ensureSecretFile, randomToken, Secret } from '@tunnel/runtime';

/** Minimum length of a login secret. Keys are derived from the secret, so a short secret could be guessed offline from a cookie. */
const LEAST_CHARACTERS = 32;

/** Reads the operator's file of login secrets, one per line. The first secret seals; every secret can open. Throws a ConfigProblem. */
export const readLoginSecretFile = (file: string): readonly Secret[] => {
  const answer = readSecretText(file);
  if ('reason' in answer) throw new ConfigProblem('CONFIG_FILE_UNREADABLE', { file, reason: answer.reason });
  const lines = linesOf(answer.secret.reveal());
  if (lines.length === 0) throw new ConfigProblem('CONFIG_FILE_UNREADABLE', { file, reason: 'the file has no secret' });
  const short = lines.findIndex((line) => line.length < LEAST_CHARACTERS);
  if (short === -1) return lines.map((line) => new Secret(line));
  const reason = `secret ${short + 1} is shorter than ${LEAST_CHARACTERS} characters`;
  throw new ConfigProblem('CONFIG_FILE_UNREADABLE', { file, reason });
};

/**
 * Loads the login secrets. If neither a file nor a data directory is configured, generates a secret that lasts only until the process
 * ends.
 */
export const loadLoginSecrets = (configured: string, dataDir: string | undefined): readonly Secret[] => {
  if (configured !== '') return readLoginSecretFile(configured);
  if (dataDir === undefined) return [new Secret(randomToken())];
  const file = join(dataDir, 'login-secret');
  try {
    ensureSecretFile(file);
    const lines = linesOf(readFileSync(file, 'utf8'));
    if (lines.length > 0) return lines.map((line) => new Secret(line));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigProblem('CONFIG_FILE_UNREADABLE', { file, reason: code ?? String(error) });
  }
  throw new ConfigProblem('CONFIG_FILE_UNREADABLE', { file, reason: 'the file is empty' });
};

const linesOf = (text: string): string[] =>
  text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
