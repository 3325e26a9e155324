// The root file system of an empty Debian server in .cache, and the Debian packages that docs/deploy.md installs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR } from '../../../../scripts/lib/paths.mjs';
import { makeDebianRoot, missingForRoot } from '../../lib/debian.mjs';

const FOLDER = join(CACHE_DIR, 'deploy');

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

/** One line about a missing program, or null. */
export function missingTools() {
  const programs = ['ip', 'unshare', 'nsenter', 'pivot_root', 'setpriv'];
  const missing = programs.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0);
  return missing.length === 0 ? missingForRoot() : `not found: ${missing.join(', ')}`;
}

/** Returns the folder of the root file system. Makes it on the first call, which takes a minute. */
export function baseRoot() {
  const root = join(FOLDER, 'base');
  if (existsSync(join(root, 'etc/complete'))) return root;
  makeDebianRoot(root, SERVER);
  // The person at the terminal: a user with sudo.
  must('chroot', [root, 'useradd', '--create-home', '--shell', '/bin/bash', '--groups', 'sudo', 'ann']);
  writeFileSync(join(root, 'etc/sudoers.d/ann'), 'ann ALL=(ALL) NOPASSWD: ALL\n', { mode: 0o440 });
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
  // The root file system has the sources of the machine, so that the lists fit.
  const settings = {
    'Dir::Etc::sourcelist': join(root, 'etc/apt/sources.list'),
    'Dir::Etc::sourceparts': join(root, 'etc/apt/sources.list.d'),
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
