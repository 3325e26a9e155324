// Node.js for each target, from the npm registry: the versions are in release/package.json, the hashes in release/package-lock.json.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR } from '../../scripts/lib/paths.mjs';
import { npm, RELEASE, run } from './programs.mjs';

const FOLDER = join(CACHE_DIR, 'release', 'node');

const readJson = (name) => JSON.parse(readFileSync(join(RELEASE, name), 'utf8'));

/** The pinned package of a target: { name, version, integrity }. `builder` is the Node.js that makes executables for other systems. */
export function pinnedNode(target) {
  const alias = readJson('node-versions.json')[target];
  const entry = readJson('package-lock.json').packages[`node_modules/${alias}`];
  if (!entry?.integrity) throw new Error(`release/package-lock.json has no hash for ${alias}`);
  return { name: entry.name, version: entry.version, integrity: entry.integrity };
}

/** Downloads the Node.js of a target if the cache does not have it. Returns the paths of its binary and license, and its version. */
export async function fetchNode(target) {
  const pinned = pinnedNode(target);
  const folder = join(FOLDER, `${pinned.name}@${pinned.version}`);
  if (!existsSync(folder)) await download(pinned, folder);
  const binary = join(folder, 'bin', target.startsWith('win') ? 'node.exe' : 'node');
  return { binary, license: await licenseOf(folder, target), version: pinned.version };
}

/** The package for Windows has no license file. The license is the same for all systems. */
async function licenseOf(folder, target) {
  const file = join(folder, 'LICENSE');
  if (existsSync(file)) return file;
  if (pinnedNode(target).version !== pinnedNode('builder').version)
    throw new Error(`no license of Node.js for ${target}`);
  return (await fetchNode('builder')).license;
}

async function download({ name, version, integrity }, folder) {
  mkdirSync(FOLDER, { recursive: true });
  const unfinished = mkdtempSync(join(FOLDER, '.download-'));
  try {
    await npm(['pack', `${name}@${version}`, '--pack-destination', unfinished, '--prefer-offline'], {
      cwd: unfinished,
    });
    const [file] = readdirSync(unfinished);
    const tarball = join(unfinished, file);
    const hash = createHash('sha512').update(readFileSync(tarball)).digest('base64');
    if (`sha512-${hash}` !== integrity) throw new Error(`${name}@${version} does not match release/package-lock.json`);
    await run('tar', ['-xzf', tarball, '-C', unfinished, '--exclude', 'package/include']);
    if (!existsSync(folder)) renameSync(join(unfinished, 'package'), folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}
