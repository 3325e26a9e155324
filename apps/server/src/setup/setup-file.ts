// Writes the config file of `tunnel-server setup`. An existing file is replaced only on request, and a copy of the file is kept.
import { constants, copyFileSync, lstatSync, readFileSync, rmSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '@tunnel/errors';
import { syncFolderSync, writeAtomicSync } from '@tunnel/runtime';
import { makeDirectory } from '../data-dir/data-dir.ts';
import { setsNothing } from './settings-text.rules.ts';

/** Config file of an installed server. */
export const SYSTEM_FILE = '/etc/tunnel/server.toml';
/** Data directory of an installed server. */
export const SYSTEM_DATA_DIR = '/var/lib/tunnel';

/** The file may contain a password: writable by its owner, readable by the group of the server's user, and hidden from other users. */
const FILE_MODE = 0o640;

/** Maximum size of a file that can be the unchanged file of a package. A larger file contains settings. */
const UNSET_FILE_MAX_BYTES = 64 * 1024;

/** Maximum number of copies kept within the same second. */
const COPIES_PER_SECOND = 100;

interface WriteOptions {
  /** Replaces an existing file. */
  readonly force: boolean;
  readonly now: Date;
  /** Permissions of the folder of the file, if the folder does not exist. */
  readonly folderMode: number;
  /** Owner of a new file. A replaced file keeps its owner and group. Null if this user cannot choose the owner. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

/** Writes the file. Returns the path of the kept copy, or null if there was no previous file. */
export const writeSetupFile = (file: string, text: string, options: WriteOptions): string | null => {
  const { force, now, folderMode, owner } = options;
  const previous = orUnwritable(file, () => previousFile(file));
  const isReplaced = previous !== undefined && !previous.isUnset;
  if (isReplaced && !force) throw new Fault('CONFIG_FILE_EXISTS', { file });
  const copy = isReplaced ? orUnwritable(file, () => keepCopy(file, now)) : null;
  try {
    makeDirectory(dirname(file), folderMode, 0o755);
    const kept = previous === undefined ? owner : owner && { uid: previous.stats.uid, gid: previous.stats.gid };
    // Without a previous file, a file written by another process in this moment must not be replaced.
    const given = { mode: FILE_MODE, flush: true, exclusive: previous === undefined };
    writeAtomicSync(file, text, kept === null ? given : { ...given, owner: kept });
  } catch (error) {
    // The previous file is still in its place.
    if (copy !== null) rmSync(copy, { force: true });
    const { code, syscall } = error as NodeJS.ErrnoException;
    throw code === 'EEXIST' && syscall === 'link' ? new Fault('CONFIG_FILE_EXISTS', { file }) : unwritable(file, error);
  }
  orUnwritable(file, () => syncFolderSync(dirname(file)));
  return copy;
};

interface PreviousFile {
  readonly stats: Stats;
  /** Whether the file sets nothing, like the unchanged file of a package. */
  readonly isUnset: boolean;
}

/**
 * Looks at an existing file. Only a regular file can be replaced: a link would stop pointing to its target, reading a pipe can block
 * forever, and a device such as /dev/null must stay.
 */
const previousFile = (file: string): PreviousFile | undefined => {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  const kind = kindOf(stats);
  if (kind !== null) throw new Error(`the path is ${kind}`);
  return { stats, isUnset: stats.size <= UNSET_FILE_MAX_BYTES && setsNothing(readFileSync(file, 'utf8')) };
};

const kindOf = (stats: Stats): string | null => {
  if (stats.isFile()) return null;
  if (stats.isSymbolicLink()) return 'a symbolic link';
  return stats.isDirectory() ? 'a directory' : 'not a regular file';
};

/** Copies the file under a new name. An earlier copy is never replaced, also not a copy of the same second. */
const keepCopy = (file: string, now: Date): string => {
  const first = `${file}.${now.toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;
  for (let count = 1; ; count += 1) {
    const copy = count === 1 ? first : `${first}-${count}`;
    try {
      copyFileSync(file, copy, constants.COPYFILE_EXCL);
      return copy;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || count === COPIES_PER_SECOND) throw error;
    }
  }
};

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENOENT: 'the folder cannot be created',
  EEXIST: 'a part of the path is not a directory',
  ENOTDIR: 'a part of the path is not a directory',
  ELOOP: 'the path has a loop of symbolic links',
  ENAMETOOLONG: 'the path is too long',
};

const orUnwritable = <T>(file: string, action: () => T): T => {
  try {
    return action();
  } catch (error) {
    throw unwritable(file, error);
  }
};

const unwritable = (file: string, error: unknown): Fault => {
  const { code = '', message } = error as NodeJS.ErrnoException;
  return new Fault('CONFIG_FILE_UNWRITABLE', { file, reason: REASONS[code] ?? message }, { cause: error });
};
