// Starts a PostgreSQL of a different version than the bundled one, with programs from the folder of an npm package and a cluster in /tmp.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { eventually } from '@tunnel/testkit';

const INIT_ARGS = ['-U', 'postgres', '-E', 'UTF8', '--locale=C', '--auth=trust', '--no-sync'];
const START_TIMEOUT_MS = 60_000;

export class OtherPostgres {
  readonly #dir: string;
  readonly #server: ChildProcess;

  private constructor(dir: string, server: ChildProcess) {
    this.#dir = dir;
    this.#server = server;
  }

  static async start(packageDir: string, settings: Readonly<Record<string, string>>): Promise<OtherPostgres> {
    // The folder is directly in /tmp, because TMPDIR may be inaccessible to the server's user or too long for a socket path.
    const dir = mkdtempSync('/tmp/tunnel-postgres-');
    const bin = copyPrograms(packageDir, dir);
    const ids = ownerIds();
    mkdirSync(join(dir, 'data'), { mode: 0o700 });
    for (const path of [dir, join(dir, 'data')]) if (ids.uid !== undefined) chownSync(path, ids.uid, ids.gid);
    const options = { cwd: '/', env: { PATH: process.env['PATH'], LC_ALL: 'C' }, ...ids };
    const at = ['-D', join(dir, 'data')];
    execFileSync(join(bin, 'initdb'), [...at, ...INIT_ARGS], { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    const all = { listen_addresses: '', unix_socket_directories: dir, log_min_messages: 'fatal', ...settings };
    const args = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    // The server is not detached, so that Ctrl-C ends it as well.
    const server = spawn(join(bin, 'postgres'), [...at, ...args], {
      ...options,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const started = new OtherPostgres(dir, server);
    try {
      await eventually(() => started.#checkReady(), { timeoutMs: START_TIMEOUT_MS });
      return started;
    } catch (error) {
      await started.close();
      throw error;
    }
  }

  get url(): string {
    return `postgres:///postgres?user=postgres&host=${this.#dir}`;
  }

  async close(): Promise<void> {
    if (this.#server.exitCode === null && this.#server.kill('SIGINT')) await once(this.#server, 'exit');
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #checkReady(): void {
    if (!/^ready\s*$/m.test(readFileSync(join(this.#dir, 'data/postmaster.pid'), 'utf8'))) throw new Error('not ready');
  }
}

/** Copies the programs and creates symbolic links from the package's list, because npm packages cannot contain links. */
const copyPrograms = (packageDir: string, dir: string): string => {
  cpSync(join(packageDir, 'native'), join(dir, 'native'), { recursive: true });
  const links = JSON.parse(readFileSync(join(packageDir, 'native/pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) symlinkSync(relative(join(target, '..'), source), join(dir, target));
  return join(dir, 'native/bin');
};

/** Returns the user to run PostgreSQL as. PostgreSQL refuses to run as root, so root uses the user `postgres` or `nobody`. */
const ownerIds = (): { uid?: number; gid: number } | Record<string, never> => {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string, user: string): number =>
    Number(execFileSync('id', [flag, user], { stdio: ['ignore', 'pipe', 'ignore'] }).toString());
  for (const user of ['postgres', 'nobody']) {
    try {
      return { uid: idOf('-u', user), gid: idOf('-g', user) };
    } catch {}
  }
  throw new Error('PostgreSQL does not run as root, and there is no user nobody');
};
