// Settings of backups, in the form that the server uses, and the check of their folder at the start.
import { accessSync, constants, mkdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import type { ServerConfig } from '@tunnel/config/server';
import type { LogMode } from '../embedded-postgres/log-mode.ts';

/** Paths in the folder of the backups. */
export interface BackupFolders {
  readonly dir: string;
  /** Finished and unfinished backups. */
  readonly base: string;
  /** Archive of the log. */
  readonly wal: string;
  /** Lock file of the running backup. */
  readonly lock: string;
}

export const backupFolders = (backupDir: string): BackupFolders => {
  const dir = resolve(backupDir);
  return { dir, base: join(dir, 'base'), wal: join(dir, 'wal'), lock: join(dir, 'backup.lock') };
};

/** Returns how the embedded database has to write its log for these settings. */
export const logModeOf = ({ dir, wal }: ServerConfig['backup']): LogMode => {
  if (dir === '') return 'minimal';
  return wal ? 'archive' : 'replica';
};

/** Creates the folders that are missing, with access for the server's user only. The folder above `dir` must exist. */
export const makeBackupFolders = ({ dir, base, wal }: BackupFolders): void => {
  for (const folder of [dir, base, wal]) makeFolder(folder);
};

const makeFolder = (folder: string): void => {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
};

/**
 * Returns why the folder of the backups cannot be used, as the expected value of `backup.dir`. Null if the folder can be used, or if only
 * its disk has a problem: a broken backup disk must not keep the server from starting.
 */
export const backupDirProblem = ({ backup, data_dir }: Pick<ServerConfig, 'backup' | 'data_dir'>): string | null => {
  if (backup.dir === '') return null;
  try {
    const real = realPath(resolve(backup.dir));
    if (isInside(real, realPath(resolve(data_dir)))) return 'outside of `data_dir`, also behind symbolic links';
    const existing = statSync(real, { throwIfNoEntry: false });
    if (existing !== undefined && !existing.isDirectory()) return 'a folder (there is a file)';
    accessSync(existing === undefined ? dirname(real) : real, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return PROBLEMS[(error as NodeJS.ErrnoException).code ?? ''] ?? null;
  }
};

const NOT_WRITABLE = "a folder that the server's user can write to (permission denied)";

const PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: NOT_WRITABLE,
  EPERM: NOT_WRITABLE,
  EROFS: 'a writable folder (the file system is read-only)',
  ENOENT: 'a folder below an existing folder (the folder above does not exist; is its disk mounted?)',
  ENOTDIR: 'a folder (a part of the path is a file)',
};

/** Resolves symbolic links. The last part of the path does not have to exist. */
const realPath = (path: string): string => {
  try {
    return realpathSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const above = dirname(path);
    // The data directory may not exist yet either, with several parts of its path missing.
    return above === path ? path : join(realPath(above), basename(path));
  }
};

const isInside = (path: string, folder: string): boolean => {
  const below = relative(folder, path);
  return below === '' || !(below === '..' || below.startsWith(`..${sep}`));
};

/** Returns whether the backups are on the same disk as the data directory, so that both are lost together. */
export const isOnSameDisk = (backupDir: string, dataDir: string): boolean => {
  try {
    return statSync(backupDir).dev === statSync(dataDir).dev;
  } catch {
    return false;
  }
};
