// <data_dir>/first-account-link: the link with which the operator creates the first account of a new server. The platform writes it, the
// start command prints it.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomicSync } from './atomic-file.ts';

const pathIn = (dataDir: string): string => join(dataDir, 'first-account-link');

/** Readable only by the owner, because the link permits creating the first account. */
export const writeFirstAccountLink = (dataDir: string, link: string): void =>
  writeAtomicSync(pathIn(dataDir), `${link}\n`);

/** Returns null if there is no such file: an account exists, or sign-up does not require an invitation. */
export const readFirstAccountLink = (dataDir: string): string | null => {
  try {
    return readFileSync(pathIn(dataDir), 'utf8').trim() || null;
  } catch {
    return null;
  }
};

export const removeFirstAccountLink = (dataDir: string): void => rmSync(pathIn(dataDir), { force: true });
