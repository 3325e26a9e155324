// The programs that build and run images. Programs that are not installed come from Debian packages, which are unpacked into .cache.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CACHE_DIR } from '../../../../scripts/lib/paths.mjs';
import { missingForRoot, unpackWithDependencies } from '../../lib/debian.mjs';

export const FOLDER = join(CACHE_DIR, 'image');

/** Programs, and the Debian packages of the same name. */
const PROGRAMS = ['buildah', 'podman', 'runc', 'conmon'];
const SETTINGS = join(FOLDER, 'settings');

/** One line about a missing program or right, or null. */
export function missingPrograms() {
  const missing = ['unshare', 'ip'].find((name) => spawnSync(name, ['--help']).error !== undefined);
  return missingForRoot() ?? (missing === undefined ? null : `${missing} is not found`);
}

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
    `static_dir = "${storage}/static"`,
    `tmp_dir = "${storage}/tmp"`,
    `volume_path = "${storage}/volumes"`,
  ];
  write('containers.conf', `[containers]\nlog_driver = "k8s-file"\n[engine]\n${engine.join('\n')}\n`);
}

const isInstalled = (name) =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, name)));

/**
 * The command that starts a program with buildah and podman available. Missing programs are laid over /usr in a mount namespace, because
 * the programs start each other with an empty environment, in which they would not find libraries elsewhere.
 */
export function withPrograms(command) {
  const missing = PROGRAMS.filter((name) => !isInstalled(name));
  if (missing.length === 0) return command;
  const mount = 'mount -t overlay overlay -o "lowerdir=$0/usr:/usr" /usr && exec "$@"';
  return ['unshare', '--mount', 'sh', '-c', mount, unpackWithDependencies(...missing), ...command];
}

/** The environment of buildah and podman. */
export function programsEnv() {
  mkdirSync(FOLDER, { recursive: true });
  writeSettings();
  return {
    ...process.env,
    // For policy.json, which has no variable.
    HOME: SETTINGS,
    BUILDAH_ISOLATION: 'chroot',
    STORAGE_DRIVER: 'vfs',
    CONTAINERS_CONF: join(SETTINGS, 'containers.conf'),
    CONTAINERS_STORAGE_CONF: join(SETTINGS, 'storage.conf'),
    CONTAINERS_REGISTRIES_CONF: join(SETTINGS, 'registries.conf'),
  };
}
