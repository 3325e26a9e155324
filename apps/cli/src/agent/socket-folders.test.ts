// Control sockets of clients with real folders and sockets: where a client listens, which sockets commands find, and which stale sockets
// are removed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { choosePaths, findSockets, removeStale } from './socket-folders.ts';

let root: TemporaryDirectory;
let around: { home: string; env: Record<string, string> };
const servers: Server[] = [];

beforeEach(async () => {
  root = await temporaryDirectory();
  const folder = (name: string): string => {
    const path = join(root.path, name);
    mkdirSync(path, { mode: 0o700 });
    return path;
  };
  around = { home: folder('home'), env: { XDG_RUNTIME_DIR: folder('run'), TMPDIR: folder('tmp') } };
});
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
  await root.close();
});

const runFolder = (): string => join(around.home, '.tunnel', 'run');
const tmpFolder = (): string => join(around.env['TMPDIR'] ?? '', `tunnel-${process.getuid?.()}`);
const modeOf = (path: string): number => lstatSync(path).mode & 0o777;

const listenAt = async (path: string): Promise<void> => {
  const server = createServer();
  servers.push(server);
  server.listen(path);
  await once(server, 'listening');
};

/** Leaves a socket file behind by killing the listening process. Returns the pid of the dead process. */
const leaveStale = async (path: string): Promise<number> => {
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => console.log('up'))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(existsSync(path)).toBe(true);
  return child.pid ?? 0;
};

describe('the control socket of a client', () => {
  it('goes into the home first, then the runtime folder, then the temporary folder, with mode 0700', () => {
    expect(choosePaths(around, 42)).toEqual({
      paths: [
        join(runFolder(), '42.sock'),
        join(around.env['XDG_RUNTIME_DIR'] ?? '', 'tunnel', '42.sock'),
        join(tmpFolder(), '42.sock'),
      ],
      problems: [],
    });
    expect([modeOf(runFolder()), modeOf(tmpFolder())]).toEqual([0o700, 0o700]);
  });

  it('is not placed in a missing home, and the home is not created', () => {
    rmSync(around.home, { recursive: true });
    const { paths, problems } = choosePaths(around, 42);
    expect(paths).toHaveLength(2);
    expect(problems).toHaveLength(1);
    expect(existsSync(around.home)).toBe(false);
    expect(choosePaths({ ...around, home: '' }, 42).paths).toHaveLength(2);
  });

  it('is not placed where the path is too long for a socket', () => {
    const home = join(around.home, 'x'.repeat(100));
    mkdirSync(home);
    const { paths, problems } = choosePaths({ ...around, home }, 42);
    expect(paths[0]).toBe(join(around.env['XDG_RUNTIME_DIR'] ?? '', 'tunnel', '42.sock'));
    expect(problems).toEqual([expect.stringContaining('too long for a socket')]);
    expect(existsSync(join(home, '.tunnel'))).toBe(false);
  });

  it('is not placed where a file blocks the folder', () => {
    writeFileSync(join(around.home, '.tunnel'), '');
    expect(choosePaths(around, 42).paths).toHaveLength(2);
  });

  it('is placed in a home folder with open permissions after they are reduced to 0700', () => {
    mkdirSync(runFolder(), { recursive: true });
    chmodSync(runFolder(), 0o755);
    expect(choosePaths(around, 42).paths).toHaveLength(3);
    expect(modeOf(runFolder())).toBe(0o700);
  });

  it('is not placed in a temporary folder that is a symbolic link or accessible to other users', () => {
    mkdirSync(tmpFolder());
    chmodSync(tmpFolder(), 0o777);
    expect(choosePaths(around, 42).paths).toHaveLength(2);
    rmSync(tmpFolder(), { recursive: true });
    symlinkSync(around.home, tmpFolder());
    expect(choosePaths(around, 42).paths).toHaveLength(2);
  });
});

describe('looking up client sockets', () => {
  it('finds sockets named by a pid in all three folders and skips other names', () => {
    for (const [at, path] of choosePaths(around, 0).paths.entries()) {
      writeFileSync(path.replace('0.sock', `${at + 1}.sock`), '');
      writeFileSync(path.replace('0.sock', 'x.sock'), '');
      writeFileSync(path.replace('0.sock', '1.sock.old'), '');
    }
    expect(findSockets(around).map(({ pid }) => pid)).toEqual([1, 2, 3]);
  });

  it('skips a temporary folder with permissions for other users', () => {
    mkdirSync(tmpFolder());
    writeFileSync(join(tmpFolder(), '7.sock'), '');
    chmodSync(tmpFolder(), 0o755);
    expect(findSockets(around)).toEqual([]);
  });

  it('removes the socket of a killed client', async () => {
    choosePaths(around, 0);
    const path = join(runFolder(), 'of-a-dead.sock');
    const pid = await leaveStale(path);
    await removeStale({ pid, path });
    expect(existsSync(path)).toBe(false);
  });

  it('silently leaves a path that is not a socket and cannot be removed', async () => {
    const path = join(around.home, '99999999.sock');
    mkdirSync(path);
    await removeStale({ pid: 99_999_999, path });
    expect(existsSync(path)).toBe(true);
  });

  it('keeps a socket if the pid is in use again or a process still listens', async () => {
    choosePaths(around, 0);
    const path = join(runFolder(), 'stale.sock');
    const pid = await leaveStale(path);
    await removeStale({ pid: process.pid, path });
    expect(existsSync(path)).toBe(true);
    const live = join(runFolder(), 'live.sock');
    await listenAt(live);
    await removeStale({ pid, path: live });
    expect(existsSync(live)).toBe(true);
  });
});
