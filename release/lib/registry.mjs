// Packages of the npm registry for other systems, which npm itself would not install here: downloaded by name and version, and checked
// against the hash of a lock file.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR } from '../../scripts/lib/paths.mjs';
import { npm, run } from './programs.mjs';

const FOLDER = join(CACHE_DIR, 'release', 'registry');

/** The package in `node_modules/<name>` of a lock file: { name, version, integrity }. */
export function lockedPackage(lockFile, name) {
  const entry = JSON.parse(readFileSync(lockFile, 'utf8')).packages[`node_modules/${name}`];
  if (!entry?.integrity) throw new Error(`${lockFile} has no hash for ${name}`);
  return { name: entry.name ?? name, version: entry.version, integrity: entry.integrity };
}

/** Downloads a package if the cache does not have it. Returns the folder of the package. */
export async function fetchPackage({ name, version, integrity }) {
  const folder = join(FOLDER, `${name.replaceAll('/', '+')}@${version}`);
  if (existsSync(folder)) return folder;
  mkdirSync(FOLDER, { recursive: true });
  const unfinished = mkdtempSync(join(FOLDER, '.download-'));
  try {
    await npm(['pack', `${name}@${version}`, '--pack-destination', unfinished, '--prefer-offline'], {
      cwd: unfinished,
    });
    const [file] = readdirSync(unfinished);
    const tarball = join(unfinished, file);
    const hash = createHash('sha512').update(readFileSync(tarball)).digest('base64');
    if (`sha512-${hash}` !== integrity) throw new Error(`${name}@${version} does not match the hash of the lock file`);
    // The headers of Node.js are a third of its size.
    await run('tar', ['-xzf', tarball, '-C', unfinished, '--exclude', 'package/include']);
    if (!existsSync(folder)) renameSync(join(unfinished, 'package'), folder);
    return folder;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}
