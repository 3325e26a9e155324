// Opens what lies below a folder, and nothing else. Whoever can write there may put a link in place of anything at any moment, so it is not the
// path that is trusted: what was opened is looked at before a byte of it is read.
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { isServedName } from './request-path.ts';

/** The handle is the caller's to close. */
export interface OpenedFile {
  readonly kind: 'file';
  readonly handle: FileHandle;
  readonly stat: Stats;
  /** As it was asked for: what it is called where a link leads says less. */
  readonly name: string;
}

export interface OpenedFolder {
  readonly kind: 'folder';
  readonly handle: FileHandle;
  /** Leads to the opened folder itself, where the system has such a path. */
  readonly path: string;
}

/** `nothing`: it is not there. `refused`: it is, and is not to be seen. */
export type Opened = OpenedFile | OpenedFolder | { readonly kind: 'nothing' | 'refused' };

const NOTHING: Opened = { kind: 'nothing' };
const REFUSED: Opened = { kind: 'refused' };

/** Whatever the answer of the file system, there is no such file for visitors. Everything else is trouble of our own. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM', 'ENXIO', 'EINVAL']);

/** macOS: no link in any part of a path. Node has no name for it. */
const O_NOFOLLOW_ANY = 0x2000_0000;
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
// The last part is no link (any more), and a pipe that nobody writes to does not make us wait.
const FLAGS = O_RDONLY | (O_NONBLOCK ?? 0) | (process.platform === 'darwin' ? O_NOFOLLOW_ANY : (O_NOFOLLOW ?? 0));

/** `root`: without links. Rejects for what says nothing about the file: no descriptors left, a broken disk. */
export const openBelow = async (root: string, names: readonly string[]): Promise<Opened> => {
  try {
    // In calm times nothing outside is even opened.
    const path = await realpath(join(root, ...names));
    return isServed(root, path) ? await openAndLook(root, path, names.at(-1) ?? '') : REFUSED;
  } catch (error) {
    if (ABSENT.has((error as NodeJS.ErrnoException).code ?? '')) return NOTHING;
    throw error;
  }
};

const openAndLook = async (root: string, path: string, name: string): Promise<Opened> => {
  const handle = await open(path, FLAGS);
  try {
    const stat = await handle.stat();
    if (!isServed(root, await openedPath(handle, stat, path))) return await discard(handle);
    if (stat.isFile()) return { kind: 'file', handle, stat, name };
    // Pipes and devices are no files.
    return stat.isDirectory() ? { kind: 'folder', handle, path: handlePath(handle, path) } : await discard(handle);
  } catch (error) {
    await handle.close();
    throw error;
  }
};

const discard = async (handle: FileHandle): Promise<Opened> => {
  await handle.close();
  return REFUSED;
};

const HAS_PROC = process.platform === 'linux';

const handlePath = ({ fd }: FileHandle, path: string): string => (HAS_PROC ? `/proc/self/fd/${fd}` : path);

/**
 * Where the opened file is. Linux says so itself. Elsewhere the path is followed once more and must lead to the same file: on macOS no link was
 * followed at all, and on Windows links are not for everybody to make.
 */
const openedPath = async (handle: FileHandle, stat: Stats, path: string): Promise<string> => {
  if (HAS_PROC) return readlink(handlePath(handle, path));
  const again = await realpath(path);
  const there = await lstat(again);
  return there.ino === stat.ino && there.dev === stat.dev ? again : '';
};

/** Below the root, and with no hidden name on the way from there. */
const isServed = (root: string, path: string): boolean => {
  if (path === root) return true;
  const prefix = root.endsWith(sep) ? root : root + sep;
  if (!path.startsWith(prefix)) return false;
  return path
    .slice(prefix.length)
    .split(sep)
    .every((name) => isServedName(name, sep));
};
