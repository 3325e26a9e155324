// The root file system of an empty Debian 12 server in .cache, made by mmdebstrap, and the Debian packages that docs/deploy.md installs.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR } from '../../../../scripts/lib/paths.mjs';

const FOLDER = join(CACHE_DIR, 'deploy');
const RELEASE = 'bookworm';

/** Packages of a server beyond the smallest installation: what Debian's installer puts on every server. */
const SERVER = ['systemd-sysv', 'sudo', 'iproute2', 'ca-certificates'];

function must(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    ...options,
  });
  if (status === 0) return stdout;
  throw new Error(
    `${command} ${args.slice(0, 4).join(' ')}: ${error?.message ?? stderr.trim().split('\n').slice(-3).join(' | ')}`,
  );
}

/** The package sources of this machine, which mmdebstrap and apt use unchanged. */
function sources() {
  const folder = '/etc/apt/sources.list.d';
  const files = [
    '/etc/apt/sources.list',
    ...(existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []),
  ];
  return files
    .filter((file) => existsSync(file) && /\.(list|sources)$/.test(file))
    .map((file) => ({ file, text: readFileSync(file, 'utf8') }))
    .filter(({ text }) => text.includes(RELEASE));
}

/** mmdebstrap from its Debian package, unpacked and not installed. */
function mmdebstrap() {
  if (spawnSync('mmdebstrap', ['--version']).status === 0) return 'mmdebstrap';
  const folder = join(FOLDER, 'tools');
  const program = join(folder, 'usr/bin/mmdebstrap');
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  must('apt-get', ['download', 'mmdebstrap'], { cwd: folder });
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.deb')))
    must('dpkg-deb', ['-x', join(folder, name), folder]);
  return program;
}

/** One line about a missing program, or null. */
export function missingTools() {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'this needs Linux and root, for namespaces';
  const programs = ['ip', 'unshare', 'nsenter', 'pivot_root', 'apt-get', 'dpkg-deb', 'perl'];
  const missing = programs.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0);
  return missing.length === 0 ? null : `not found: ${missing.join(', ')}`;
}

/** Returns the folder of the root file system. Makes it on the first call, which takes a minute. */
export function baseRoot() {
  const root = join(FOLDER, 'base');
  if (existsSync(join(root, 'etc/complete'))) return root;
  rmSync(root, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  const input = sources()
    .map(({ text }) => text)
    .join('\n');
  const args = ['--mode=root', '--variant=minbase', `--include=${SERVER.join(',')}`, RELEASE, root, '-'];
  must(mmdebstrap(), ['--quiet', ...args], { input, timeout: 900_000 });
  rmSync(join(root, 'etc/apt/sources.list'), { force: true });
  // The operator of the page: a user with sudo.
  must('chroot', [root, 'useradd', '--create-home', '--shell', '/bin/bash', '--groups', 'sudo', 'ann']);
  writeFileSync(join(root, 'etc/sudoers.d/operator'), 'operator ALL=(ALL) NOPASSWD: ALL\n', { mode: 0o440 });
  writeFileSync(join(root, 'etc/complete'), '');
  return root;
}

/**
 * Downloads packages with their dependencies into the cache of a root file system, so that `apt install` finds them in a namespace without
 * a way out.
 */
export function fetchPackages(root, names) {
  const mark = join(root, 'etc/fetched');
  const wanted = names.join(' ');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return;
  const archives = join(root, 'var/cache/apt/archives');
  const lists = join(root, 'var/lib/apt/lists');
  mkdirSync(join(archives, 'partial'), { recursive: true });
  mkdirSync(join(lists, 'partial'), { recursive: true });
  for (const { file } of sources()) {
    mkdirSync(join(root, 'etc/apt/sources.list.d'), { recursive: true });
    cpSync(file, join(root, file));
  }
  const settings = {
    'Dir::State::lists': lists,
    'Dir::State::status': join(root, 'var/lib/dpkg/status'),
    'Dir::Cache::archives': archives,
    'APT::Sandbox::User': '',
    'APT::Keep-Downloaded-Packages': 'true',
  };
  const given = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  must('apt-get', [...given, 'update'], { timeout: 300_000 });
  must('apt-get', [...given, 'install', '--yes', '--download-only', ...names], { timeout: 300_000 });
  writeFileSync(mark, wanted);
}
