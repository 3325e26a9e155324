// A machine for docs/deploy.md: a root file system in separate namespaces, with its own first process, mounts, processes and network. Nothing
// in it can reach the file system or the network outside.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startChild } from '../../../../bench/lib/children.mjs';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Builds the file system tree of a machine and starts its first process. Arguments: base, upper folder, name, init. */
const BOOT = `
set -eu
base=$1 folder=$2 name=$3 init=$4
root=$folder/root
mount --make-rprivate /
mkdir -p "$root" "$folder/changes" "$folder/work"
mount -t overlay -o "lowerdir=$base,upperdir=$folder/changes,workdir=$folder/work" overlay "$root"
mount -t proc proc "$root/proc"
# Settings of the kernel belong to all machines. Only those of the network are separate.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
mount -o remount,bind,rw "$root/proc/sys/net"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  : > "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
hostname "$name"
mkdir -p "$root/.outside"
cd "$root"
pivot_root . .outside
exec chroot . /bin/sh -c '
  umount -l /.outside && rmdir /.outside
  exec env -i PATH=${PATH} container=other TERM=dumb LANG=C.UTF-8 $0
' "$init"
`;

/** Mount point of cgroup v2, or null. systemd keeps its services in control groups. */
export function cgroupRoot() {
  const line = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find((one) => one.split(' ')[2] === 'cgroup2');
  return line?.split(' ')[1] ?? null;
}

export class Machine {
  #child;
  #cgroup;
  #namespace;
  /** Id of the machine's first process, as seen from outside. */
  pid = 0;

  /** @param {{ name: string, base: string, folder: string, namespace: string, init: string, address: string, resolver: string }} what */
  constructor(what) {
    Object.assign(this, what);
    this.#namespace = what.namespace;
    this.#cgroup = join(cgroupRoot() ?? '', `${what.namespace}-${what.name}`);
  }

  async start() {
    const changes = join(this.folder, 'changes');
    mkdirSync(join(changes, 'etc'), { recursive: true });
    // A merged upper layer hides nothing: files not written here come from the base.
    chmodSync(changes, 0o755);
    writeFileSync(join(changes, 'etc/resolv.conf'), `nameserver ${this.resolver}\n`);
    writeFileSync(join(changes, 'etc/hostname'), `${this.name}\n`);
    writeFileSync(join(changes, 'etc/hosts'), `127.0.0.1 localhost\n127.0.1.1 ${this.name}\n`);
    mkdirSync(this.#cgroup, { recursive: true });
    const unshare = ['unshare', '--mount', '--pid', '--uts', '--ipc', '--cgroup', '--fork', '--kill-child=SIGKILL'];
    const boot = ['sh', '-c', BOOT, 'boot', this.base, this.folder, this.name, this.init];
    const inNetwork = ['ip', 'netns', 'exec', this.#namespace, ...unshare, ...boot];
    const args = ['-c', `echo $$ > '${this.#cgroup}/cgroup.procs'; exec "$@"`, 'sh', ...inNetwork];
    this.#child = startChild({ name: this.name, command: 'sh', args });
    this.pid = await this.#firstProcess();
  }

  /** Waits until the first process of the machine runs in its own root file system. */
  async #firstProcess() {
    const children = `/proc/${this.#child.pid}/task/${this.#child.pid}/children`;
    for (let tries = 0; tries < 200; tries += 1) {
      if (this.#child.exit !== null) throw new Error(`${this.name} did not start: ${this.#child.output.trim()}`);
      const pid = Number(existsSync(children) ? readFileSync(children, 'utf8').trim() : 0);
      if (pid > 0 && existsSync(`/proc/${pid}/root/etc/hostname`) && this.#isBooted(pid)) return pid;
      await delay(100);
    }
    throw new Error(`${this.name} did not start in 20 s: ${this.#child.output.trim()}`);
  }

  #isBooted(pid) {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return command.startsWith(this.init) && !existsSync(`/proc/${pid}/root/.outside`);
  }

  /** A path of the machine, usable from outside. */
  path(inside) {
    return join(`/proc/${this.pid}/root`, inside);
  }

  /** The command that runs a shell script on the machine as a user. */
  command(script, { user = 'root', env = {} } = {}) {
    const enter = ['--target', String(this.pid), '--mount', '--pid', '--uts', '--ipc', '--net', '--cgroup'];
    const home = user === 'root' ? '/root' : `/home/${user}`;
    const settings = { PATH, HOME: home, USER: user, LANG: 'C.UTF-8', TERM: 'dumb', ...env };
    const vars = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
    const asUser = user === 'root' ? [] : ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups'];
    const shell = ['/bin/sh', '-c', `cd "$HOME" || exit 1\n${script}`];
    return ['nsenter', ...enter, '--root', '--wd', '--', '/usr/bin/env', '-i', ...vars, ...asUser, ...shell];
  }

  /** Runs a shell script to its end. Returns its exit code and everything printed. */
  run(script, { timeoutMs = 120_000, input = '', ...options } = {}) {
    const [command, ...args] = this.command(`exec 2>&1\n${script}`, options);
    const ended = spawnSync(command, args, {
      input,
      encoding: 'utf8',
      timeout: timeoutMs,
      maxBuffer: 32 * 1024 * 1024,
    });
    return {
      code: ended.status ?? -1,
      output: `${ended.stdout}${ended.error === undefined ? '' : ended.error.message}`,
    };
  }

  /** Starts a shell script and returns without waiting for its end. */
  launch(name, script, options) {
    const [command, ...args] = this.command(`exec 2>&1\n${script}`, options);
    return startChild({ name, command, args });
  }

  /** Kills every process of the machine with its first process, and removes its files. Does not wait for events, for use at an exit. */
  stop() {
    if (this.#child?.exit === null)
      spawnSync('kill', ['-KILL', String(this.#child.pid), ...(this.pid > 0 ? [String(this.pid)] : [])]);
    for (let tries = 0; tries < 50 && existsSync(this.#cgroup); tries += 1) {
      removeGroups(this.#cgroup);
      spawnSync('sleep', ['0.1']);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Removes a control group with the groups below. Fails silently while a process is left. */
function removeGroups(group) {
  const { stdout } = spawnSync('find', [group, '-depth', '-type', 'd'], { encoding: 'utf8' });
  for (const path of stdout.split('\n').filter((one) => one !== '')) {
    try {
      rmdirSync(path);
    } catch {
      return;
    }
  }
}
