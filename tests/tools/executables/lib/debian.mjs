// Files of Debian packages without an installation: the C and C++ libraries as a root file system, and the helper programs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE_DIR } from '../../../../scripts/lib/paths.mjs';

const FOLDER = join(CACHE_DIR, 'executables', 'debian');
const LIBRARIES = ['libc6', 'libgcc-s1', 'libstdc++6'];
const HELPERS = ['bubblewrap', 'qemu-user-static'];

/** One line about a missing program, or null. */
export function missingPrograms() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'this needs Linux on an x64 processor';
  const missing = ['apt-get', 'dpkg-deb'].find((name) => spawnSync(name, ['--version']).error !== undefined);
  return missing === undefined
    ? null
    : `${missing} is not found: bubblewrap and the libraries come from Debian packages`;
}

function must(command, args, cwd = FOLDER) {
  const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim().split('\n').at(-1)}`);
}

/** apt-get with separate lists, so that the lists of the machine and its architectures stay as they are. */
function apt(architecture, args, cwd) {
  const state = join(FOLDER, `lists-${architecture}`);
  mkdirSync(join(state, 'lists/partial'), { recursive: true });
  const status = join(state, 'status');
  if (!existsSync(status)) writeFileSync(status, '');
  const settings = {
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': '',
    'Dir::State::lists': join(state, 'lists'),
    'Dir::State::status': status,
    'Dir::Cache': state,
  };
  must('apt-get', [...Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]), ...args], cwd);
}

/** Unpacks packages into a folder. */
function unpack(architecture, names, folder) {
  const packages = `${folder}-packages`;
  mkdirSync(packages, { recursive: true });
  apt(architecture, ['download', ...names], packages);
  mkdirSync(folder);
  // A root file system without merged folders would hide the dynamic linker from its usual path.
  for (const name of ['lib', 'lib64', 'bin']) {
    mkdirSync(join(folder, 'usr', name), { recursive: true });
    symlinkSync(`usr/${name}`, join(folder, name));
  }
  for (const file of readdirSync(packages))
    must('sh', [
      '-c',
      'dpkg-deb --fsys-tarfile "$0" | tar -x --keep-directory-symlink -C "$1"',
      join(packages, file),
      folder,
    ]);
  rmSync(packages, { recursive: true });
}

/** The root file system of an architecture, and the programs for this machine. */
export function fetchDebianFiles(architecture) {
  const root = join(FOLDER, architecture);
  const helpers = join(FOLDER, 'helpers');
  const isReady = (folder) => existsSync(join(folder, 'complete'));
  for (const [folder, of, names] of [
    [root, architecture, LIBRARIES],
    [helpers, 'amd64', HELPERS],
  ]) {
    if (isReady(folder)) continue;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(FOLDER, { recursive: true });
    apt(of, ['update'], FOLDER);
    unpack(of, names, folder);
    if (folder === root) addMountPoints(root);
    writeFileSync(join(folder, 'complete'), '');
  }
  const programs = { bwrap: join(helpers, 'usr/bin/bwrap'), qemu: join(helpers, 'usr/bin/qemu-aarch64-static') };
  return { root, programs };
}

/** Folders that the wrapper mounts, and the two files by which a program finds `localhost` and the user. */
function addMountPoints(root) {
  for (const name of ['proc', 'dev', 'tmp', 'etc', 'run', 'opt/tunnel'])
    mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost\n');
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
}
