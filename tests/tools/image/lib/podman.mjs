// Containers on podman with runc. The flags make podman work in a container or virtual machine with hybrid control groups and fixed limits.
import { spawn, spawnSync } from 'node:child_process';

const MEMORY_BYTES = 512 * 1024 * 1024;

const HOST_FLAGS = ['--network=host', '--ulimit=nofile=1024:1024', '--ulimit=nproc=1000:1000'];
/** The rights with which the images must work. */
const HARDENED = [
  ...['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges', '--tmpfs=/tmp'],
  ...[`--memory=${MEMORY_BYTES}`, `--memory-swap=${MEMORY_BYTES}`],
];

export class Podman {
  #env;
  #containers = new Set();
  #volumes = new Set();

  constructor(env) {
    this.#env = env;
  }

  /** Runs a podman command. Returns { status, stdout, stderr }. */
  run(args, { input } = {}) {
    const { status, stdout, stderr, error } = spawnSync('podman', args, {
      env: this.#env,
      input,
      encoding: 'utf8',
      timeout: 180_000,
      maxBuffer: 64 * 1024 * 1024,
    });
    if (error !== undefined) throw error;
    return { status, stdout, stderr };
  }

  must(args, options) {
    const { status, stdout, stderr } = this.run(args, options);
    if (status !== 0) throw new Error(`podman ${args.slice(0, 3).join(' ')}: ${stderr.trim().split('\n').at(-1)}`);
    return stdout.trim();
  }

  /** Runs a podman command while this process continues. Returns the exit code. */
  later(args) {
    return new Promise((resolve, reject) => {
      spawn('podman', args, { env: this.#env, stdio: 'ignore' }).once('error', reject).once('exit', resolve);
    });
  }

  volume(name) {
    this.run(['volume', 'rm', '--force', name]);
    this.must(['volume', 'create', name]);
    this.#volumes.add(name);
    return name;
  }

  /** Starts a container in the background. `isHardened`: read-only, without capabilities, with 512 MB of memory. */
  start(name, { image, args = [], env = {}, volumes = {}, flags = [], isHardened = true }) {
    this.remove(name);
    this.#containers.add(name);
    this.must(['run', '--detach', '--name', name, ...this.#flags({ env, volumes, flags, isHardened }), image, ...args]);
  }

  /** Runs a container to its end. */
  once({ image, args = [], env = {}, volumes = {}, flags = [], isHardened = true, input }) {
    const stdin = input === undefined ? [] : ['--interactive'];
    return this.run(['run', '--rm', ...stdin, ...this.#flags({ env, volumes, flags, isHardened }), image, ...args], {
      input,
    });
  }

  #flags({ env, volumes, flags, isHardened }) {
    return [
      ...HOST_FLAGS,
      ...(isHardened ? HARDENED : []),
      ...Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
      ...Object.entries(volumes).flatMap(([source, target]) => ['--volume', `${source}:${target}`]),
      ...flags,
    ];
  }

  exec(name, args) {
    return this.run(['exec', name, ...args]);
  }

  /** Returns a function that reads files in the data directory of a server. */
  dataOf(name) {
    return (path) => this.exec(name, ['sh', '-c', `cat /data/${path}`]).stdout;
  }

  inspect(name, format) {
    return this.must(['inspect', '--format', `{{${format}}}`, name]);
  }

  isRunning(name) {
    return this.inspect(name, '.State.Running') === 'true';
  }

  /** Process id, on this machine, of process 1 of a container. */
  pidOf(name) {
    return Number(this.inspect(name, '.State.Pid'));
  }

  /** The memory limit of a container in bytes, or null if there is no limit. */
  memoryOf(name) {
    return Number(this.inspect(name, '.HostConfig.Memory'));
  }

  /** Ends a container without a warning. */
  kill(name) {
    this.must(['kill', '--signal', 'KILL', name]);
    this.must(['wait', name]);
  }

  logs(name) {
    const { stdout, stderr } = this.run(['logs', name]);
    return stdout + stderr;
  }

  /** Stops a container as an orchestrator does. Returns the exit code and the duration. */
  async stop(name, graceSecs) {
    const began = performance.now();
    await this.later(['stop', '--time', String(graceSecs), name]);
    const seconds = (performance.now() - began) / 1000;
    return { code: Number(this.inspect(name, '.State.ExitCode')), seconds };
  }

  remove(name) {
    this.run(['rm', '--force', '--time', '0', name]);
    this.#containers.delete(name);
  }

  removeAll() {
    for (const name of this.#containers) this.remove(name);
    for (const name of this.#volumes) this.run(['volume', 'rm', '--force', name]);
  }
}
