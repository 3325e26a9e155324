// Node.js for each target, from the npm registry: the versions are in release/package.json, the hashes in release/package-lock.json.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RELEASE } from './programs.mjs';
import { fetchPackage, lockedPackage } from './registry.mjs';

/**
 * The pinned package of a target: { name, version, integrity }. `builder` is the Node.js that makes executables for other systems, and
 * `server-<target>` the Node.js of an installed server.
 */
export function pinnedNode(target) {
  const alias = JSON.parse(readFileSync(join(RELEASE, 'node-versions.json'), 'utf8'))[target];
  return lockedPackage(join(RELEASE, 'package-lock.json'), alias);
}

/** Downloads the Node.js of a target if the cache does not have it. Returns the paths of its binary and license, and its version. */
export async function fetchNode(target) {
  const pinned = pinnedNode(target);
  const folder = await fetchPackage(pinned);
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

/** The license of Node.js also has the licenses of the libraries inside Node.js. */
export const nodeNotice = ({ license, version }) => ({
  name: 'Node.js',
  version,
  license: 'MIT',
  texts: [readFileSync(license, 'utf8').trim()],
});
