// Lets Node.js keep the compiled code of a program in the user's home folder, so that the next start is faster. Loaded by the
// executable before the program. Code from the cache runs unchecked, so the cache is used only if no other user can write to its folder.
import { lstatSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import nodeModule from 'node:module';
import { homedir } from 'node:os';
import { join, parse } from 'node:path';

/** Programs (versions and places of installation) whose code is kept. Each takes a few MB. */
const PROGRAMS_KEPT = 4;

interface User {
  readonly uid: number;
  readonly home: string;
}

/** Returns true for a folder that belongs to the user and that no other user can change. */
const isOwn = (folder: string, uid: number): boolean => {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found !== undefined && found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0;
};

/**
 * Returns the folder for the code of a program, created if necessary. Null if the home folder or a folder on the way belongs to another
 * user, as with `sudo`, or can be changed by other users.
 */
export const openCacheFolder = (name: string, { uid, home }: User): string | null => {
  // A home folder such as / belongs to the whole system.
  if (home === parse(home).root || !isOwn(home, uid)) return null;
  let folder = home;
  for (const part of ['.cache', 'hatchway', name]) {
    folder = join(folder, part);
    try {
      mkdirSync(folder, { mode: 0o700 });
      if (part === name) removeOthers(join(folder, '..'), name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return null;
    }
    if (!isOwn(folder, uid)) return null;
  }
  return folder;
};

/** Removes the code of the programs that were built longest ago. */
const removeOthers = (parent: string, name: string): void => {
  const others = readdirSync(parent)
    .filter((other) => other !== name)
    .map((other) => ({ path: join(parent, other), at: lstatSync(join(parent, other)).mtimeMs }))
    .sort((a, b) => b.at - a.at);
  for (const { path } of others.slice(PROGRAMS_KEPT - 1)) rmSync(path, { recursive: true, force: true });
};

/** Functions of Node.js 22 and later. */
interface CompileCache {
  enableCompileCache?(folder: string): unknown;
}

/** Keeps the compiled code of the program in the given folder. Does nothing where Node.js or the home folder does not allow it. */
export const keepCompiledCode = (program: string): void => {
  const { enableCompileCache } = nodeModule as CompileCache;
  const uid = process.getuid?.();
  if (enableCompileCache === undefined || uid === undefined || uid !== process.geteuid?.()) return;
  try {
    // A new build of the program has a new name, so that the code of previous builds is removed.
    const { ino, mtimeMs } = statSync(program);
    const folder = openCacheFolder(`${ino}-${Math.floor(mtimeMs)}`, { uid, home: homedir() });
    if (folder !== null) enableCompileCache(folder);
  } catch {
    // The cache is only an acceleration. For example, the disk can be full.
  }
};
