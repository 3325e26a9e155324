// Writes the config file of `tunnel-server setup`. An existing file is replaced only on request, and a copy of the file is kept.
import { chownSync, constants, copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '@tunnel/errors';
import { writeAtomicSync } from '@tunnel/runtime';
import { setsNothing } from './settings-text.rules.ts';

/** Config file of an installed server. */
export const SYSTEM_FILE = '/etc/tunnel/server.toml';
/** Data directory of an installed server. */
export const SYSTEM_DATA_DIR = '/var/lib/tunnel';

/** The file may contain a password: writable by its owner, readable by the group of the server's user, and hidden from other users. */
const FILE_MODE = 0o640;

interface WriteOptions {
  /** Replaces an existing file. */
  readonly force: boolean;
  readonly now: Date;
  /** Group of the file, if the server's user exists already. */
  readonly gid: number | null;
}

/** Writes the file. Returns the path of the kept copy, or null if there was no previous file. */
export const writeSetupFile = (file: string, text: string, { force, now, gid }: WriteOptions): string | null => {
  try {
    const isReplaced = existsSync(file) && !setsNothing(readFileSync(file, 'utf8'));
    if (isReplaced && !force) throw new Fault('CONFIG_FILE_EXISTS', { file });
    const copy = isReplaced ? keepCopy(file, now) : null;
    mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
    writeAtomicSync(file, text, { mode: FILE_MODE, flush: true });
    if (gid !== null) chownSync(file, -1, gid);
    return copy;
  } catch (error) {
    throw error instanceof Fault ? error : unwritable(file, error);
  }
};

const keepCopy = (file: string, now: Date): string => {
  const copy = `${file}.${now.toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;
  // Fails rather than replace an earlier copy of the same second.
  copyFileSync(file, copy, constants.COPYFILE_EXCL);
  return copy;
};

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EISDIR: 'the path is a directory',
  ENOTDIR: 'a part of the path is not a directory',
};

const unwritable = (file: string, error: unknown): Fault => {
  const { code = '', message } = error as NodeJS.ErrnoException;
  return new Fault('CONFIG_FILE_UNWRITABLE', { file, reason: REASONS[code] ?? message }, { cause: error });
};
