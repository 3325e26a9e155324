// The programs that build and run images. Programs that are not installed come from Debian packages, which are unpacked into .cache.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CACHE_DIR } from '../../../../scripts/lib/paths.mjs';

export const FOLDER = join(CACHE_DIR, 'image');

const PROGRAMS = {
  mmdebstrap: 'mmdebstrap',
  buildah: 'buildah',
  podman: 'podman',
  runc: 'runc',
  conmon: 'conmon',
  bwrap: 'bubblewrap',
};
const UNPACKED = join(FOLDER, 'programs');
const SETTINGS = join(FOLDER, 'settings');

/** One line about a missing program or right, or null. */
export function missingPrograms() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'this needs Linux on an x64 processor';
  if (process.getuid?.() !== 0) return 'it needs root for root file systems and a network namespace';
  const missing = ['apt-get', 'dpkg-deb', 'unshare', 'ip'].find((name) => !isProgram(name));
  return missing === undefined ? null : `${missing} is not found: the programs for images come from Debian packages`;
}

const isProgram = (name) => spawnSync(name, ['--help'], { stdio: 'ignore' }).error === undefined;

/** Runs a program to its end, and returns stdout. An error has the last lines of stderr. */
export function must(command, args, { env = process.env, cwd = FOLDER, input } = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    env,
    cwd,
    input,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status === 0) return stdout;
  const printed = `${stderr ?? ''}`.trimEnd().split('\n').slice(-8).join('\n');
  throw new Error(`${command} ${args.slice(0, 4).join(' ')}: ${error?.message ?? `exit code ${status}`}\n${printed}`);
}

/** Downloads the packages of missing programs, with every package that they need and the system lacks. Installs nothing. */
function unpackMissing(names) {
  const done = join(UNPACKED, 'complete');
  if (existsSync(done)) return;
  const archives = join(FOLDER, 'archives');
  const lists = join(FOLDER, 'lists');
  for (const folder of [join(archives, 'partial'), join(lists, 'partial')]) mkdirSync(folder, { recursive: true });
  const settings = Object.entries({
    'Dir::State::lists': lists,
    'Dir::Cache': FOLDER,
    'Dir::Cache::archives': archives,
    'APT::Sandbox::User': '',
    'Debug::NoLocking': 'true',
  }).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  must('apt-get', [...settings, 'update']);
  must('apt-get', [...settings, '--yes', '--no-install-recommends', '--download-only', 'install', ...names]);
  rmSync(UNPACKED, { recursive: true, force: true });
  mkdirSync(UNPACKED, { recursive: true });
  for (const file of readdirSync(archives).filter((name) => name.endsWith('.deb')))
    must('dpkg-deb', ['--extract', join(archives, file), UNPACKED]);
  rmSync(archives, { recursive: true });
  writeFileSync(done, '');
}

/** Settings of buildah and podman: a storage in .cache, no registry, and runc, which also works with hybrid control groups. */
function writeSettings() {
  mkdirSync(join(SETTINGS, '.config/containers'), { recursive: true });
  const write = (name, text) => writeFileSync(join(SETTINGS, name), text);
  const storage = join(FOLDER, 'storage');
  write('storage.conf', `[storage]\ndriver = "vfs"\ngraphroot = "${storage}/graph"\nrunroot = "${storage}/run"\n`);
  write('registries.conf', 'unqualified-search-registries = []\n');
  write('.config/containers/policy.json', '{ "default": [{ "type": "insecureAcceptAnything" }] }\n');
  const engine = [
    'runtime = "runc"',
    'cgroup_manager = "cgroupfs"',
    'events_logger = "file"',
    `conmon_path = ["${pathOf('conmon')}"]`,
    `static_dir = "${storage}/static"`,
    `tmp_dir = "${storage}/tmp"`,
    `volume_path = "${storage}/volumes"`,
    `[engine.runtimes]\nrunc = ["${pathOf('runc')}"]`,
  ];
  write('containers.conf', `[containers]\nlog_driver = "k8s-file"\n[engine]\n${engine.join('\n')}\n`);
}

const SEARCHED = ['usr/bin', 'usr/sbin', 'bin', 'sbin'].map((folder) => join(UNPACKED, folder));
const LIBRARIES = ['usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu'].map((folder) => join(UNPACKED, folder));

const pathOf = (name) =>
  [...(process.env.PATH ?? '').split(delimiter), ...SEARCHED]
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));

/** Makes the programs available. Returns the environment in which they run. */
export function fetchPrograms() {
  mkdirSync(FOLDER, { recursive: true });
  const missing = Object.keys(PROGRAMS).filter((name) => pathOf(name) === undefined);
  if (missing.length > 0) unpackMissing(missing.map((name) => PROGRAMS[name]));
  writeSettings();
  return {
    ...process.env,
    PATH: [process.env.PATH, ...SEARCHED].join(delimiter),
    ...(existsSync(UNPACKED) ? { LD_LIBRARY_PATH: LIBRARIES.join(delimiter) } : {}),
    // For policy.json, which has no variable.
    HOME: SETTINGS,
    BUILDAH_ISOLATION: 'chroot',
    STORAGE_DRIVER: 'vfs',
    CONTAINERS_CONF: join(SETTINGS, 'containers.conf'),
    CONTAINERS_STORAGE_CONF: join(SETTINGS, 'storage.conf'),
    CONTAINERS_REGISTRIES_CONF: join(SETTINGS, 'registries.conf'),
  };
}
