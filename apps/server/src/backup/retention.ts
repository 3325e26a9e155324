// Deletes old backups, and the archived log that no remaining backup needs.
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Logger, syncFolder, takeLock } from '@tunnel/runtime';
import { unfinishedName } from './plan.rules.ts';
import { planRetention } from './retention.rules.ts';
import { refuseOthers } from './same-database.ts';
import { backupFolders } from './settings.ts';
import { readBackups } from './stored-backups.ts';

export interface RetentionOptions {
  readonly backupDir: string;
  /** Folder of the database. In a folder with backups of another database, nothing is deleted. */
  readonly clusterDir: string;
  /** Number of finished backups to keep. */
  readonly keep: number;
  readonly logger: Logger;
}

/** Applies the retention. Does nothing while a backup is running, in this process or another, because the backup needs the log. */
export const applyRetention = async ({ backupDir, clusterDir, keep, logger }: RetentionOptions): Promise<void> => {
  const folders = backupFolders(backupDir);
  const lock = takeLock(folders.lock);
  if (lock === null) return;
  try {
    const backups = await readBackups(backupDir);
    await refuseOthers(backups, clusterDir);
    const stored = backups.map(({ name, manifest }) => ({
      name,
      walStart: manifest?.wal_start.segment ?? null,
    }));
    const plan = planRetention(stored, await namesIn(folders.wal), keep);
    for (const name of plan.backups) await removeBackup(folders.base, name);
    for (const name of plan.wal) await rm(join(folders.wal, name), { force: true });
    if (plan.backups.length > 0) logger.info({ backups: plan.backups }, 'old backups are deleted');
  } finally {
    lock.release();
  }
};

/**
 * Removes a backup. The folder first gets the name of an unfinished backup, so that a backup that is only partly removed is never listed,
 * and the next backup removes the rest.
 */
const removeBackup = async (base: string, name: string): Promise<void> => {
  const aside = join(base, unfinishedName(name));
  await rename(join(base, name), aside);
  await syncFolder(base);
  await rm(aside, { recursive: true, force: true });
};

const namesIn = (folder: string): Promise<string[]> =>
  readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
