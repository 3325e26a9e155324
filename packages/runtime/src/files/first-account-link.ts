// <data_dir>/first-account-link: the link with which the operator creates the first account of a new server. The platform writes it, the
// start command prints it.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readBoundedSync, writeAtomicSync } from './atomic-file.ts';

const pathIn = (dataDir: string): string => join(dataDir, 'first-account-link');

/** Readable only by the owner, because the link permits creating the first account. */
export const writeFirstAccountLink = (dataDir: string, link: string): void =>
  writeAtomicSync(pathIn(dataDir), `${link}\n`);

const LINK_MAX_BYTES = 4096;

/**
 * Returns null if there is no such file: an account exists, or sign-up does not require an invitation. Root reads the file of the server's
 * user, so anything other than a link is ignored.
 */
export const readFirstAccountLink = (dataDir: string): string | null => {
  try {
    const text = readBoundedSync(pathIn(dataDir), LINK_MAX_BYTES)?.trim() ?? '';
    return /^https?:\/\/[!-~]+$/.test(text) ? text : null;
  } catch {
    return null;
  }
};

export const removeFirstAccountLink = (dataDir: string): void => rmSync(pathIn(dataDir), { force: true });
