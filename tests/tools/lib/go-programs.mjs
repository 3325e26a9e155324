// Installs programs with Go, into a folder of .cache.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @param {string} folder of the executables
 * @param {Record<string, string>} modules Go packages with their versions, by the names of the executables
 * @returns {'ready' | 'no Go' | 'failed'}
 */
export function installGoPrograms(folder, modules) {
  const missing = Object.keys(modules).filter((name) => !existsSync(join(folder, name)));
  if (missing.length === 0) return 'ready';
  if (spawnSync('go', ['version']).status !== 0) return 'no Go';
  mkdirSync(folder, { recursive: true });
  const env = { ...process.env, GOBIN: folder };
  const isInstalled = (name) =>
    spawnSync('go', ['install', modules[name]], { stdio: 'inherit', env }).status === 0 &&
    existsSync(join(folder, name));
  return missing.every(isInstalled) ? 'ready' : 'failed';
}
