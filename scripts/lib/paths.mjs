// Where things are in the checkout, and how to walk it.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '');
export const CACHE_DIR = join(ROOT, '.cache');

const SKIPPED = new Set(['node_modules', 'dist', '.cache', '.git']);

/** Every file below `dir`, sorted, without what tools generate. */
export function filesBelow(dir) {
  const found = [];
  for (const entry of entriesOf(dir)) {
    if (entry.isDirectory() && !SKIPPED.has(entry.name)) found.push(...filesBelow(join(dir, entry.name)));
    else if (entry.isFile()) found.push(join(dir, entry.name));
  }
  return found;
}

/** The folders of all workspaces, relative to `root`. What is left of a workspace that is gone has no sources: builds and caches, which git does not know. */
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
