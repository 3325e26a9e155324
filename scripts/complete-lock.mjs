// Adds optional packages for other platforms to package-lock.json if the current registry does not carry the packages. npm omits packages
// that cannot be fetched, and `npm ci` then rejects the lock file. Run this script after `npm install` has changed the lock file.
// usage: node scripts/complete-lock.mjs [FOLDER]
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './lib/paths.mjs';

const SYSTEMS = ['android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'aix', 'win32'];
const PROCESSORS = ['arm64', 'x64', 'ia32', 'arm', 'ppc64', 'riscv64', 's390x', 'loong64', 'mips64el', 'wasm32'];

/**
 * Derives the platform of a package from a name such as `@scope/name-linux-arm64-musl`. Returns undefined if the name contains no
 * platform.
 */
function platformOf(name) {
  const words = name.split('/').at(-1).split('-');
  const os = words.filter((word) => SYSTEMS.includes(word));
  const cpu = words.filter((word) => PROCESSORS.includes(word));
  if (cpu.length === 0) return undefined;
  const libc = os[0] === 'linux' ? words.map(libcOf).filter(Boolean) : [];
  return { cpu, ...(os.length > 0 ? { os } : {}), ...(libc.length > 0 ? { libc } : {}) };
}

function libcOf(word) {
  if (word.startsWith('musl')) return 'musl';
  return word.startsWith('gnu') ? 'glibc' : undefined;
}

/** Whether Node.js would find the package `name` when imported from the package at `path`. */
function isLocked(packages, path, name) {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    if (packages[`${at === '' ? '' : `${at}/`}node_modules/${name}`]) return true;
    if (at === '') return false;
  }
}

function complete(packages) {
  const added = [];
  for (const [path, entry] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const platform = platformOf(name);
      if (!platform || !/^\d/.test(version) || isLocked(packages, path, name)) continue;
      packages[`node_modules/${name}`] = { version, ...platform, ...(entry.dev ? { dev: true } : {}), optional: true };
      added.push(name);
    }
  }
  return added;
}

const file = join(ROOT, process.argv[2] ?? '', 'package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8'));
const added = complete(lock.packages);
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en')));
if (added.length > 0) writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(added.length === 0 ? 'package-lock.json is complete' : `added ${added.length} optional packages`);
