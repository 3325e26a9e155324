// Native code that a single executable carries: the operating system loads such code only from a file.
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomicSync } from '@tunnel/runtime';

/** Access of the group or of other users. */
const SHARED_MODE = 0o077;

/** Writes the code to a folder that only the user can access, unless the file is there already, and returns the path of the file. */
export const nativeFile = (
  bytes: Buffer,
  { folder, name }: { readonly folder: string; readonly name: string },
): string => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  refuseShared(folder);
  // Two versions of the program can run at the same time, each with its file.
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  const file = join(folder, `${name}-${hash}.node`);
  if (!hasBytes(file, bytes)) writeAtomicSync(file, bytes, { mode: 0o600 });
  return file;
};

/** Another user who can write to the folder could replace the code. Windows has no such mode: the home folder is private there. */
const refuseShared = (folder: string): void => {
  if (process.platform === 'win32') return;
  const { mode, uid } = lstatSync(folder);
  if (uid === process.getuid?.() && (mode & SHARED_MODE) === 0) return;
  throw new Error(`${folder} is not private to this user`);
};

const hasBytes = (file: string, bytes: Buffer): boolean => {
  try {
    return readFileSync(file).equals(bytes);
  } catch {
    return false;
  }
};
