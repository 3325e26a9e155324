// The admin token: the one of the config, or one that is generated once and kept in the data directory.
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { randomToken, Secret } from '@tunnel/runtime';
import { dataDirFault } from './data-dir.ts';

export interface AdminToken {
  readonly token: Secret;
  /** Null when the config names the token: nothing is written then. */
  readonly file: string | null;
}

export const loadAdminToken = (configured: Secret, dataDir: string): AdminToken => {
  if (configured.reveal() !== '') return { token: configured, file: null };
  const file = join(dataDir, 'admin-token');
  try {
    const text = (readIfThere(file) ?? generate(file)).trim();
    if (text === '') throw new Fault('CONFIG_DATA_DIR', { dir: dataDir, reason: 'its file admin-token is empty' });
    return { token: new Secret(text), file };
  } catch (error) {
    throw error instanceof Fault ? error : dataDirFault(dataDir, error);
  }
};

/** Written aside and linked into place: nobody reads half a token, and of two first starts one wins for both. */
const generate = (file: string): string => {
  const aside = `${file}.${process.pid}.tmp`;
  writeFileSync(aside, `${randomToken()}\n`, { mode: 0o600 });
  try {
    linkSync(aside, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(aside, { force: true });
  }
  return readFileSync(file, 'utf8');
};

const readIfThere = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
};
