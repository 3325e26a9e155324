// A secret in a file of its own: generated once, readable by its owner alone.
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { randomToken, Secret } from '../secret.ts';

/** null: there is no such file. */
export const readSecretFile = (file: string): Secret | null => {
  try {
    return new Secret(readFileSync(file, 'utf8').trim());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
};

/** The one that is there, or a new one: written aside and linked into place, so that nobody reads half of it and of two first starts one wins for both. */
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
