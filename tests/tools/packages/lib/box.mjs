// A root file system of Debian in which packages are installed and run, and a server inside.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startChild, stopChild } from '../../../../bench/lib/children.mjs';
import { freePort } from '../../../../bench/lib/free-ports.mjs';
import { makeDebianRoot, unpackPrograms } from '../../lib/debian.mjs';
import { until } from '../../lib/until.mjs';

const bwrap = () => join(unpackPrograms('bubblewrap'), 'usr/bin/bwrap');

/** A root file system in which programs run with the network and the processes of this machine. Mounts are below /mnt. */
export class Box {
  root;
  #mounts;

  /** `mounts`: folders of this machine by their path inside. */
  constructor(root, debianPackages, mounts) {
    this.root = root;
    this.#mounts = Object.entries(mounts).flatMap(([at, folder]) => ['--ro-bind', folder, at]);
    makeDebianRoot(root, debianPackages);
  }

  arguments(...command) {
    return [
      ...['--bind', this.root, '/', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--tmpfs', '/mnt'],
      ...this.#mounts,
      ...['--die-with-parent', '--clearenv', '--setenv', 'HOME', '/root', '--chdir', '/'],
      ...['--setenv', 'PATH', '/usr/sbin:/usr/bin:/sbin:/bin', ...command],
    ];
  }

  run(...command) {
    const { status, stdout, stderr } = spawnSync(bwrap(), this.arguments(...command), { encoding: 'utf8' });
    return { code: status, out: `${stdout}${stderr}`.trim(), stdout: stdout.trim() };
  }

  must(...command) {
    const { code, out, stdout } = this.run(...command);
    if (code !== 0) throw new Error(`${command.join(' ')}: ${out.split('\n').slice(-3).join(' ')}`);
    return stdout;
  }

  has = (path) => existsSync(join(this.root, path));
  read = (path) => readFileSync(join(this.root, path), 'utf8');
}

export const AS_USER = ['setpriv', '--reuid=tunnel', '--regid=tunnel', '--init-groups', '--inh-caps=-all'];
export const CONFIG = '/etc/tunnel/server.toml';
export const DATA = '/var/lib/tunnel';

/** Any free ports instead of those of the config file. */
const portsOf = (port) =>
  Object.entries({
    ...Object.fromEntries(
      ['CONTROL', 'API', 'METRICS', 'HTTP', 'HTTPS'].map((name) => [`TUNNEL_SERVER__${name}_PORT`, '0']),
    ),
    TUNNEL_PLATFORM__PORT: '0',
    TUNNEL_LIMITS__TCP_PORT_RANGE: `[${port}, ${port}]`,
    TUNNEL_LIMITS__UDP_PORT_RANGE: `[${port}, ${port + 2}]`,
  }).flatMap(([name, value]) => ['--setenv', name, value]);

const readRun = (box) => {
  try {
    return JSON.parse(box.read(join(DATA, 'run.json')));
  } catch {
    return null;
  }
};

/** Runs the server as its unit does: as the user of the package, with the data directory that systemd would create. */
export async function withServer(box, use) {
  if (!box.has(DATA)) box.must('install', '-d', '-o', 'tunnel', '-g', 'tunnel', '-m', '700', DATA);
  const ports = portsOf(await freePort());
  const args = box.arguments(...ports, ...AS_USER, 'tunnel-server', 'stack', '--config', CONFIG);
  const child = startChild({ name: 'server', command: bwrap(), args });
  try {
    const run = await until('a running server', () => child.exit ?? readRun(box), { timeoutMs: 60_000 });
    if (child.exit !== null) throw new Error(`the server ended: ${child.output}`);
    await use(run);
    process.kill(run.pid, 'SIGTERM');
    await child.exited;
    if (child.exit !== 'exit code 0') throw new Error(`the server ended with ${child.exit}: ${child.output}`);
  } finally {
    await stopChild(child);
  }
}

/** Replaces systemctl, and returns what the scripts of a package have asked systemd for since the last call. */
export function recordSystemctl(box) {
  mkdirSync(join(box.root, 'run/systemd/system'), { recursive: true });
  const file = join(box.root, 'usr/bin/systemctl');
  writeFileSync(file, '#!/bin/sh\necho "$*" >> /run/systemctl.log\n');
  chmodSync(file, 0o755);
  const log = join(box.root, 'run/systemctl.log');
  return () => {
    const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
    rmSync(log, { force: true });
    return lines;
  };
}
