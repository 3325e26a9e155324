// Opens files below a folder, and no others. A program with write access can replace any file with a link at any moment, so paths are not
// trusted: the opened file is verified before any byte is read.
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { isServedName } from './request-path.ts';

/** An opened file of a published folder. The caller must close the handle. */
export interface OpenedFile {
  readonly kind: 'file';
  readonly handle: FileHandle;
  readonly stat: Stats;
  /** The requested name, which matters more than the name of a link's target. */
  readonly name: string;
}

export interface OpenedFolder {
  readonly kind: 'folder';
  readonly handle: FileHandle;
  /** Path of the opened folder itself, if the system has such paths. */
  readonly path: string;
}

/** `nothing`: the file does not exist. `refused`: the file exists, but must not be served. */
export type Opened = OpenedFile | OpenedFolder | { readonly kind: 'nothing' | 'refused' };

const NOTHING: Opened = { kind: 'nothing' };
const REFUSED: Opened = { kind: 'refused' };

/** Error codes that mean a missing file for visitors. Other errors are problems of the client. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM', 'ENXIO', 'EINVAL']);

/** macOS flag that forbids links in all parts of a path. Missing in Node's constants. */
const O_NOFOLLOW_ANY = 0x2000_0000;
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
// The last part of the path must not be a link, and opening a pipe without a writer must not block.
const FLAGS = O_RDONLY | (O_NONBLOCK ?? 0) | (process.platform === 'darwin' ? O_NOFOLLOW_ANY : (O_NOFOLLOW ?? 0));

/**
 * Opens a file below `root`, a path without links. Rejects for errors unrelated to the file, such as missing descriptors or a broken disk.
 */
export const openBelow = async (root: string, names: readonly string[]): Promise<Opened> => {
  try {
    // Checks the path first, so that normally no file outside the root is opened.
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
    // Pipes and devices in a published folder are not served.
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
 * Returns the path of the opened file. Linux provides it. Elsewhere the path is resolved again and must lead to the same file: on macOS no
 * link was followed, and on Windows creating links needs a privilege.
 */
const openedPath = async (handle: FileHandle, stat: Stats, path: string): Promise<string> => {
  if (HAS_PROC) return readlink(handlePath(handle, path));
  const again = await realpath(path);
  const there = await lstat(again);
  return there.ino === stat.ino && there.dev === stat.dev ? again : '';
};

/** Tells whether a path is below the root, without hidden names in between. */
const isServed = (root: string, path: string): boolean => {
  if (path === root) return true;
  const prefix = root.endsWith(sep) ? root : root + sep;
  if (!path.startsWith(prefix)) return false;
  return path
    .slice(prefix.length)
    .split(sep)
    .every((name) => isServedName(name, sep));
};
