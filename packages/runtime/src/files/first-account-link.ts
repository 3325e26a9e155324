// <data_dir>/first-account-link: the link by which the first account of a new server signs up, for its operator. The platform writes it, the start prints it.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomicSync } from './atomic-file.ts';

const pathIn = (dataDir: string): string => join(dataDir, 'first-account-link');

/** Readable by its owner only: whoever has the link can make the first account. */
export const writeFirstAccountLink = (dataDir: string, link: string): void =>
  writeAtomicSync(pathIn(dataDir), `${link}\n`);

/** Returns null if there is no such file: there is an account, or sign-up is not by invitation. */
export const readFirstAccountLink = (dataDir: string): string | null => {
  try {
    return readFileSync(pathIn(dataDir), 'utf8').trim() || null;
  } catch {
    return null;
  }
};

export const removeFirstAccountLink = (dataDir: string): void => rmSync(pathIn(dataDir), { force: true });
