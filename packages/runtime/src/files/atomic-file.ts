// Atomic file writes: new content is written to a temporary file and then renamed. Readers, and the next start after a crash, find either
// the old or the new content.
import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { randomToken } from '../secret.ts';

export interface AtomicWriteOptions {
  /** Permissions of the file. Default: only the owner can read and write. */
  readonly mode?: number;
  /**
   * Flushes the content to disk before the rename. Without it, a file survives the end of the process but can be empty after a power
   * failure. A flush takes milliseconds, so it is only for files that cannot be recreated.
   */
  readonly flush?: boolean;
  /**
   * The caller guarantees by a lock or queue to be the only writer of this file. Then the temporary file has a fixed name, so that the
   * leftover of a killed process is replaced by the next write. Otherwise every write uses a random name.
   */
  readonly soleWriter?: boolean;
}

export interface AtomicWriteSyncOptions extends AtomicWriteOptions {
  /** Sets the owner, and exactly `mode` whatever the umask, before the file gets its name. Needs root, or the current owner. */
  readonly owner?: { readonly uid: number; readonly gid: number };
  /** Fails with EEXIST if the file exists, also if another process creates the file at the same moment. */
  readonly exclusive?: boolean;
}

/** Suffix of the temporary file that replaces the original after a complete write. */
export const ASIDE = '.new';

/** Replaces the file at `path`. A symbolic link is replaced, not followed. On failure the old content stays. */
export const writeAtomic = async (
  path: string,
  content: string | Uint8Array | Iterable<string>,
  options: AtomicWriteOptions = {},
): Promise<void> => {
  const aside = asideOf(path, options);
  if (options.soleWriter === true) await rm(aside, { force: true });
  try {
    await writeFile(aside, content, createOptions(options));
    await rename(aside, path);
  } catch (error) {
    await rm(aside, { force: true }).catch(() => {});
    throw error;
  }
};

/** Like {@link writeAtomic}, for callers that cannot wait: a process about to exit, or a command with nothing else to do. */
export const writeAtomicSync = (
  path: string,
  content: string | Uint8Array,
  options: AtomicWriteSyncOptions = {},
): void => {
  const aside = asideOf(path, options);
  if (options.soleWriter === true) rmSync(aside, { force: true });
  try {
    const created = createOptions(options);
    writeFileSync(aside, content, created);
    if (options.owner !== undefined) {
      chownSync(aside, options.owner.uid, options.owner.gid);
      chmodSync(aside, created.mode);
    }
    if (options.exclusive === true) {
      linkSync(aside, path);
      removeQuietly(aside);
    } else renameSync(aside, path);
  } catch (error) {
    removeQuietly(aside);
    throw error;
  }
};

const asideOf = (path: string, { soleWriter }: AtomicWriteOptions): string =>
  soleWriter === true ? path + ASIDE : `${path}.${randomToken(6)}${ASIDE}`;

/** `wx` fails for an existing file or symbolic link, so that no other file is overwritten. */
const createOptions = ({ mode = 0o600, flush = false }: AtomicWriteOptions) => ({ mode, flush, flag: 'wx' }) as const;

const removeQuietly = (path: string): void => {
  try {
    rmSync(path, { force: true });
  } catch {
    // An error of removing the temporary file is dropped, because the caller's error is more useful.
  }
};

/** Flushes a folder's entries. Only then does a rename survive a power failure. */
export const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};

export const syncFolderSync = (folder: string): void => {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

/**
 * Returns the text of a file, or null if there is no file. Rejects for a file larger than `maxBytes`, so that a corrupt file cannot exhaust
 * memory.
 */
export const readBounded = async (path: string, maxBytes: number): Promise<string | null> => {
  try {
    refuseUnbounded(await stat(path), maxBytes);
    return await readFile(path, 'utf8');
  } catch (error) {
    return nullIfMissing(error);
  }
};

export const readBoundedSync = (path: string, maxBytes: number): string | null => {
  try {
    refuseUnbounded(statSync(path), maxBytes);
    return readFileSync(path, 'utf8');
  } catch (error) {
    return nullIfMissing(error);
  }
};

/** Checks a file before reading. Rejects pipes and devices, because reading them can block forever. */
const refuseUnbounded = (found: Stats, maxBytes: number): void => {
  if (!found.isFile()) throw new Error('not a regular file');
  if (found.size > maxBytes) throw new Error(`it has ${found.size} bytes`);
};

const nullIfMissing = (error: unknown): null => {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
};
