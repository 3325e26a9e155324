// Checks whether node_modules matches package-lock.json, using npm's own record of the installed packages.
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { workspaceDirs } from './paths.mjs';

/** @returns {{ fresh: true } | { fresh: false, why: string, command: 'ci' | 'install' }} */
export function installState(root) {
  const lock = readJson(join(root, 'package-lock.json'));
  if (!lock) return { fresh: false, why: 'there is no package-lock.json', command: 'install' };
  const drifted = manifestDrift(root, lock);
  if (drifted)
    return { fresh: false, why: `${drifted} asks for other packages than package-lock.json`, command: 'install' };
  // npm writes this file last. If the file is missing, the install never ran or was interrupted.
  const installed = readJson(join(root, 'node_modules/.package-lock.json'));
  if (!installed) return { fresh: false, why: 'packages are not installed', command: 'ci' };
  const missing = firstMissing(root, lock.packages, installed.packages);
  if (missing) return { fresh: false, why: `${missing} is not what package-lock.json asks for`, command: 'ci' };
  return { fresh: true };
}

/**
 * Links each workspace of the lock file into node_modules, so that a new workspace needs no install. Without node_modules, npm creates
 * the links.
 */
export function linkWorkspaces(root) {
  const lock = readJson(join(root, 'package-lock.json'));
  if (!lock || !existsSync(join(root, 'node_modules/.package-lock.json'))) return;
  for (const [path, { link, resolved }] of Object.entries(lock.packages)) {
    const at = join(root, path);
    if (!link || existsSync(at) || !existsSync(join(root, resolved))) continue;
    mkdirSync(dirname(at), { recursive: true });
    // Removes a dangling link, left by a workspace that had the same name in a different folder.
    rmSync(at, { force: true });
    symlinkSync(relative(dirname(at), join(root, resolved)), at, 'dir');
  }
}

function firstMissing(root, wanted, installed) {
  for (const [path, entry] of Object.entries(wanted)) {
    if (!path.startsWith('node_modules/')) continue;
    // Links are created by linkWorkspaces; npm's record may be older than a new workspace.
    if (entry.link && existsSync(join(root, path))) continue;
    const found = installed[path];
    // Optional packages for other platforms are in the lock file but never installed.
    if (!found && entry.optional) continue;
    if (!found || found.version !== entry.version || found.resolved !== entry.resolved) return path.slice(13);
    if (entry.link) return path.slice(13);
  }
  return undefined;
}

function manifestDrift(root, lock) {
  for (const dir of ['', ...workspaceDirs(root)]) {
    const manifest = readJson(join(root, dir, 'package.json'));
    if (!manifest) continue;
    const locked = lock.packages[dir] ?? {};
    for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies']) {
      if (!sameRecord(manifest[kind] ?? {}, locked[kind] ?? {})) return join(dir, 'package.json');
    }
  }
  return undefined;
}

function sameRecord(a, b) {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
