// <data_dir>/first-account-link: the link by which the first account of a new server signs up, for its operator. The platform writes it, the start prints it.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const pathIn = (dataDir: string): string => join(dataDir, 'first-account-link');

/** Readable by its owner only: whoever has the link can make the first account. */
export const writeFirstAccountLink = (dataDir: string, link: string): void => {
  const file = pathIn(dataDir);
  const aside = `${file}.${process.pid}.tmp`;
  writeFileSync(aside, `${link}\n`, { mode: 0o600 });
  renameSync(aside, file);
};

/** Returns null if there is no such file: there is an account, or sign-up is not by invitation. */
export const readFirstAccountLink = (dataDir: string): string | null => {
  try {
    return readFileSync(pathIn(dataDir), 'utf8').trim() || null;
  } catch {
    return null;
  }
};

export const removeFirstAccountLink = (dataDir: string): void => rmSync(pathIn(dataDir), { force: true });
