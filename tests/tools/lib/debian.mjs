// Root file systems and helper programs from Debian packages, unpacked into .cache/debian. Nothing is installed on this machine.
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { CACHE_DIR } from '../../../scripts/lib/paths.mjs';

const FOLDER = join(CACHE_DIR, 'debian');

/** One line about a missing program, or null. */
export function missingPrograms() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'this needs Linux on an x64 processor';
  const missing = ['apt-get', 'dpkg-deb'].find((name) => spawnSync(name, ['--version']).error !== undefined);
  return missing === undefined
    ? null
    : `${missing} is not found: helper programs and libraries come from Debian packages`;
}

/** One line about the missing right or program for `makeDebianRoot`, or null. */
export function missingForRoot() {
  if (process.getuid?.() !== 0) return 'this needs root, to install packages into a root file system';
  return missingPrograms();
}

/** Runs a program that must succeed, and returns its output. */
function must(command, args, cwd = FOLDER) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr.trim().split('\n').at(-1)}`);
  return stdout;
}

/** apt-get with separate lists, so that the lists of the machine and its architectures stay as they are. `status`: the installed packages. */
function apt(architecture, args, cwd, status = noPackages(architecture)) {
  const state = stateOf(architecture);
  for (const name of ['lists/partial', 'archives/partial']) mkdirSync(join(state, name), { recursive: true });
  const settings = {
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': '',
    'Dir::State::lists': join(state, 'lists'),
    'Dir::State::status': status,
    'Dir::Cache': state,
    'Debug::NoLocking': 'true',
  };
  must('apt-get', [...Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]), ...args], cwd);
}

const stateOf = (architecture) => join(FOLDER, `lists-${architecture}`);

/** A list of installed packages without entries. */
function noPackages(architecture) {
  const file = join(stateOf(architecture), 'status');
  mkdirSync(dirname(file), { recursive: true });
  if (!existsSync(file)) writeFileSync(file, '');
  return file;
}

/** Unpacks packages, without the packages that they depend on, into a folder of the cache. Returns the folder. */
function unpack(name, architecture, packages, prepare = () => {}) {
  const folder = join(FOLDER, name);
  if (existsSync(join(folder, 'complete'))) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  apt(architecture, ['update'], FOLDER);
  const downloads = `${folder}-packages`;
  mkdirSync(downloads, { recursive: true });
  apt(architecture, ['download', ...packages], downloads);
  extract(downloads, folder);
  rmSync(downloads, { recursive: true });
  prepare(folder);
  writeFileSync(join(folder, 'complete'), '');
  return folder;
}

/** Extracts the packages of a folder into a new folder. */
function extract(downloads, folder) {
  mkdirSync(folder);
  // A root file system without merged folders would hide the dynamic linker from its usual path.
  for (const merged of ['lib', 'lib64', 'bin', 'sbin']) {
    mkdirSync(join(folder, 'usr', merged), { recursive: true });
    symlinkSync(`usr/${merged}`, join(folder, merged));
  }
  const command = 'dpkg-deb --fsys-tarfile "$0" | tar -x --keep-directory-symlink -C "$1"';
  for (const file of readdirSync(downloads).filter((name) => name.endsWith('.deb')))
    must('sh', ['-c', command, join(downloads, file), folder]);
}

/** The folder with the files of packages for this machine, such as `usr/bin/bwrap` of bubblewrap. */
export const unpackPrograms = (...packages) => unpack(`programs-${packages.join('-')}`, 'amd64', packages);

/** The folder with the files of packages for this machine, and of every package that they need and this machine lacks. */
export function unpackWithDependencies(...packages) {
  const folder = join(FOLDER, `with-dependencies-${packages.join('-')}`);
  if (existsSync(join(folder, 'complete'))) return folder;
  rmSync(folder, { recursive: true, force: true });
  const archives = join(stateOf('amd64'), 'archives');
  const onMachine = (...args) => apt('amd64', args, FOLDER, '/var/lib/dpkg/status');
  onMachine('update');
  onMachine('clean');
  onMachine('--yes', '--no-install-recommends', '--download-only', 'install', ...packages);
  extract(archives, folder);
  onMachine('clean');
  writeFileSync(join(folder, 'complete'), '');
  return folder;
}

/** A root file system with nothing but the given packages, which are not configured. */
export const unpackRoot = (architecture, ...packages) =>
  unpack(`root-${architecture}-${packages.join('-')}`, architecture, packages, addMountPoints);

/** Folders that the wrapper mounts, and the two files by which a program finds `localhost` and the user. */
function addMountPoints(root) {
  for (const name of ['proc', 'dev', 'tmp', 'etc', 'run', 'opt/tunnel'])
    mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost\n');
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
}

/** The sources of the distribution itself, without those of other vendors. */
function distribution() {
  const [, suite] = /^VERSION_CODENAME=(.+)$/m.exec(readFileSync('/etc/os-release', 'utf8')) ?? [];
  const files = [
    '/etc/apt/sources.list.d/debian.sources',
    '/etc/apt/sources.list.d/ubuntu.sources',
    '/etc/apt/sources.list',
  ];
  const sources = files.find((file) => existsSync(file));
  if (suite === undefined || sources === undefined) throw new Error('the sources of Debian packages are not found');
  return { suite, sources };
}

/**
 * Makes a root file system with the smallest Debian and some packages, as after an installation. The folder is replaced. mmdebstrap takes
 * a minute the first time; later calls unpack the archive in the cache. `isSlim`: without Perl, as in Debian's slim image. Requires root.
 */
export function makeDebianRoot(folder, packages, { isSlim = false } = {}) {
  const archive = join(FOLDER, `root-${packages.join('-')}${isSlim ? '-slim' : ''}.tar`);
  if (!existsSync(archive)) {
    const program = join(unpackPrograms('mmdebstrap'), 'usr/bin/mmdebstrap');
    const { suite, sources } = distribution();
    const unfinished = `${archive}.${process.pid}.tmp`;
    const args = ['--mode=root', '--variant=minbase', '--format=tar', `--include=${packages.join(',')}`];
    // Merging the folders from the start needs no package usrmerge, which is written in Perl.
    const hooks = join(unpackPrograms('mmdebstrap'), 'usr/share/mmdebstrap/hooks/merged-usr');
    const slim = isSlim ? [`--hook-dir=${hooks}`, '--include=usr-is-merged'] : [];
    must(program, ['--quiet', ...args, ...slim, suite, unfinished, sources]);
    renameSync(unfinished, archive);
  }
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  must('tar', ['-x', '--numeric-owner', '-p', '-f', archive, '-C', folder]);
}
