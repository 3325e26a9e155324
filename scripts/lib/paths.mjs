// Locations of files in the checkout, and functions that list files.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '');
export const CACHE_DIR = join(ROOT, '.cache');

const SKIPPED = new Set(['node_modules', 'dist', '.cache', '.git']);

/** Lists every file below `dir`, sorted, without generated files. */
export function filesBelow(dir) {
  const found = [];
  for (const entry of entriesOf(dir)) {
    if (entry.isDirectory() && !SKIPPED.has(entry.name)) found.push(...filesBelow(join(dir, entry.name)));
    else if (entry.isFile()) found.push(join(dir, entry.name));
  }
  return found;
}

/**
 * Lists the folders of all workspaces, relative to `root`. Remains of a deleted workspace, which are builds and caches ignored by git, do
 * not count, because they have no sources.
 */
export function workspaceDirs(root = ROOT) {
  const list = (parent) =>
    entriesOf(join(root, parent))
      .filter((entry) => entry.isDirectory())
      .map((entry) => `${parent}/${entry.name}`)
      .filter((dir) => ['package.json', 'src'].some((name) => existsSync(join(root, dir, name))));
  return [...list('packages'), ...list('apps')];
}

function entriesOf(dir) {
  try {
    return readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}
