// A secret in a separate file: generated once, readable only by its owner.
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { randomToken, Secret } from '../secret.ts';

/** Reads a secret from a file. Returns null if there is no such file. */
export const readSecretFile = (file: string): Secret | null => {
  try {
    return new Secret(readFileSync(file, 'utf8').trim());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
};

/**
 * Returns the existing secret or creates it. The file is linked into place, so that no reader sees a partial secret, and two concurrent
 * first starts use the same secret.
 */
export const ensureSecretFile = (file: string): Secret => {
  const found = readSecretFile(file);
  if (found !== null) return found;
  const aside = `${file}.${process.pid}.${randomToken(6)}.tmp`;
  writeFileSync(aside, `${randomToken()}\n`, { mode: 0o600, flag: 'wx' });
  try {
    linkSync(aside, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(aside, { force: true });
  }
  return new Secret(readFileSync(file, 'utf8').trim());
};
