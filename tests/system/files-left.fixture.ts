// Files of a folder at a given moment, to be restored later: a simulation of the files that a kill leaves on disk.
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Remembers the files of a folder, and returns a function that restores them. Lock files are left out: after a real kill their process is
 * gone, while the test process is still alive.
 */
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
