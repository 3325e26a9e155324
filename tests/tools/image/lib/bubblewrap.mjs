// Containers without an engine: the root file system of an image under bubblewrap, read-only and without capabilities. There is no memory
// limit.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unpackPrograms } from '../../lib/debian.mjs';
import { descendantsOf } from './processes.mjs';
import { FOLDER, must } from './programs.mjs';

const PLACE = join(FOLDER, 'bubblewrap');

export class Bubblewrap {
  #program = join(unpackPrograms('bubblewrap'), 'usr/bin/bwrap');
  #images = new Map();
  #containers = new Map();

  /** Unpacks an OCI archive, under the name by which `start` finds the image. */
  load(image, archive) {
    const layout = join(PLACE, 'layout');
    const root = join(PLACE, 'roots', image.replaceAll(/\W/g, '-'));
    for (const folder of [layout, root]) {
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { recursive: true });
    }
    must('tar', ['-xf', archive, '-C', layout]);
    const [{ Config: config, Layers: layers }] = JSON.parse(readFileSync(join(layout, 'manifest.json'), 'utf8'));
    for (const layer of layers) must('tar', ['-xzpf', join(layout, layer), '-C', root]);
    // Engines add this file to every container.
    writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost\n');
    this.#images.set(image, { root, config: JSON.parse(readFileSync(join(layout, config), 'utf8')).config });
  }

  volume(name) {
    const folder = join(PLACE, 'volumes', name);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  start(name, options) {
    this.remove(name);
    const log = join(PLACE, `${name}.log`);
    const output = openSync(log, 'w');
    const child = spawn(this.#program, this.#args(options), { stdio: ['ignore', output, output] });
    closeSync(output);
    const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
    this.#containers.set(name, { child, log, ended, env: this.#envOf(options) });
  }

  once({ input, ...options }) {
    return spawnSync(this.#program, this.#args(options), { input, encoding: 'utf8' });
  }

  #envOf({ image, env = {} }) {
    const { config } = this.#images.get(image);
    return [...config.Env, ...Object.entries(env).map(([key, value]) => `${key}=${value}`)];
  }

  #args(options) {
    const { image, args = [], volumes = {} } = options;
    const { root, config } = this.#images.get(image);
    const [uid, gid] = config.User.split(':');
    return [
      ...['--ro-bind', root, '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--chdir', config.WorkingDir],
      ...Object.entries(volumes).flatMap(([source, target]) => ['--bind', source, target]),
      ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--uid', uid, '--gid', gid, '--cap-drop', 'ALL'],
      ...['--as-pid-1', '--die-with-parent', '--clearenv'],
      ...this.#envOf(options).flatMap((variable) => ['--setenv', ...splitOnce(variable)]),
      ...config.Entrypoint,
      ...(args.length > 0 ? args : config.Cmd),
    ];
  }

  exec(name, args) {
    const inside = ['--target', String(this.pidOf(name)), '--user', '--mount', '--pid', '--preserve-credentials'];
    const command = ['env', '--ignore-environment', ...this.#containers.get(name).env, ...args];
    return spawnSync('nsenter', [...inside, '--', ...command], { encoding: 'utf8' });
  }

  dataOf(name) {
    return (path) => this.exec(name, ['sh', '-c', `cat /data/${path}`]).stdout;
  }

  isRunning(name) {
    const { child } = this.#containers.get(name);
    return child.exitCode === null && child.signalCode === null;
  }

  /** bubblewrap itself is outside; its child is process 1 of the container. */
  pidOf(name) {
    const { child } = this.#containers.get(name);
    return descendantsOf(child.pid).find((pid) => pid !== child.pid);
  }

  memoryOf() {
    return null;
  }

  logs(name) {
    return readFileSync(this.#containers.get(name).log, 'utf8');
  }

  async kill(name) {
    process.kill(this.pidOf(name), 'SIGKILL');
    await this.#containers.get(name).ended;
  }

  async stop(name) {
    const began = performance.now();
    process.kill(this.pidOf(name), 'SIGTERM');
    const code = await this.#containers.get(name).ended;
    return { code, seconds: (performance.now() - began) / 1000 };
  }

  remove(name) {
    this.#containers.get(name)?.child.kill('SIGKILL');
    this.#containers.delete(name);
  }

  removeAll() {
    for (const name of this.#containers.keys()) this.remove(name);
    rmSync(PLACE, { recursive: true, force: true });
  }
}

const splitOnce = (variable) => [variable.slice(0, variable.indexOf('=')), variable.slice(variable.indexOf('=') + 1)];
