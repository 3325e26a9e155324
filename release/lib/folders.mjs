// Folders of a release: lists of files, and temporary folders.
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { CACHE_DIR } from '../../scripts/lib/paths.mjs';

/** The paths of all files below a folder, with slashes, sorted. */
export const filesIn = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .sort();

/** Runs `use` with a temporary folder in the cache, on the same disk as the packages. */
export async function withFolder(use) {
  const parent = join(CACHE_DIR, 'release');
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, 'work-'));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
