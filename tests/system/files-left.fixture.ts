// The files of a folder as they are at one moment, to be put back later: what a kill leaves on disk.
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Locks are left out: the kernel's kill leaves them with a process that is gone, and inside the test's process that one still lives. */
export const rememberFiles = (folder: string): (() => void) => {
  const kept = filesIn(folder).map((path) => ({ path, bytes: readFileSync(path), mode: lstatSync(path).mode }));
  return () => {
    for (const { path, bytes, mode } of kept) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, bytes, { mode });
    }
  };
};

const filesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && !entry.name.includes('.lock'))
      .map((entry) => join(entry.parentPath, entry.name));
  } catch {
    return [];
  }
};
