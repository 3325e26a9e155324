// The data directory: made on first use, for this user alone.
import { accessSync, constants, mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { Fault } from '@tunnel/errors';

/** The absolute path of a directory that exists and can be written. */
export const openDataDir = (configured: string): string => {
  const dir = resolve(configured);
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
    return dir;
  } catch (error) {
    throw dataDirFault(dir, error);
  }
};

export const dataDirFault = (dir: string, error: unknown): Fault =>
  new Fault('CONFIG_DATA_DIR', { dir, reason: reasonOf(error) }, { cause: error });

const reasonOf = (error: unknown): string => {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === 'EEXIST' || code === 'ENOTDIR') return 'it is not a directory';
  if (code === 'EACCES' || code === 'EPERM') return 'no permission';
  if (code === 'EROFS') return 'the file system is read-only';
  if (code === 'ENOSPC') return 'the disk is full';
  return error instanceof Error ? error.message : String(error);
};
