import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadAdminToken, lockDataDir, openDataDir, type RunFile, removeRunFile, writeRunFile } from './data-dir.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tunnel-server-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('the data directory', () => {
  it('is created with its parents and mode 0700', async () => {
    const path = await openDataDir(join(dir, 'a/b'));
    expect(path).toBe(join(dir, 'a/b'));
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });

  it('is refused with a reason if the path is a file', async () => {
    writeFileSync(join(dir, 'file'), '');
    await expect(openDataDir(join(dir, 'file'))).rejects.toThrow('cannot be used: not a directory');
    await expect(openDataDir(join(dir, 'file/below'))).rejects.toThrow('cannot be used: not a directory');
  });

  it.runIf(process.platform === 'linux')('is refused at once where the system creates no folders', async () => {
    for (const path of ['/proc/xx', '/proc/xx/yy', '/sys/xx', '/dev/null/x'])
      await expect(openDataDir(path)).rejects.toThrow(/cannot be used: (it cannot be created|permission denied|not a)/);
  });

  it('is refused after five seconds if the file system does not respond', async () => {
    const clock = new FakeClock();
    const opened = openDataDir(join(dir, 'a'), { clock, probe: () => new Promise(() => {}) });
    const refusal = opened.catch((error: Error) => error.message);
    await clock.advance(5000);
    expect(await refusal).toContain('cannot be used: no response from the file system within 5 s');
  });
});

describe('the admin token', () => {
  const NONE = new Secret('');

  it('is generated once in a file with mode 0600, and read at the next start', () => {
    const first = loadAdminToken(NONE, dir);
    const second = loadAdminToken(NONE, dir);
    expect(first.token.reveal()).toMatch(/^[\w-]{43}$/);
    expect(second.token.reveal()).toBe(first.token.reveal());
    expect(first.file).toBe(join(dir, 'admin-token'));
    expect(statSync(join(dir, 'admin-token')).mode & 0o777).toBe(0o600);
  });

  it('is taken from the config if set there, and no file is written', () => {
    const { token, file } = loadAdminToken(new Secret('from-the-config'), dir);
    expect(token.reveal()).toBe('from-the-config');
    expect(file).toBeNull();
    expect(() => readFileSync(join(dir, 'admin-token'))).toThrow('ENOENT');
  });

  it('is refused when its file is empty', () => {
    writeFileSync(join(dir, 'admin-token'), '\n');
    expect(() => loadAdminToken(NONE, dir)).toThrow('the file admin-token is empty');
  });

  it('is refused with the path of a missing data directory', () => {
    expect(() => loadAdminToken(NONE, join(dir, 'gone'))).toThrow(`data directory ${join(dir, 'gone')} cannot be used`);
  });
});

describe('the file run.json', () => {
  let other: ChildProcess | undefined;
  afterEach(() => void other?.kill('SIGKILL'));

  const content = (pid: number): RunFile => ({
    pid,
    platform_url: null,
    api_url: 'http://127.0.0.1:4041',
    control: '127.0.0.1:4040',
    http_url: null,
    https_url: null,
    metrics_url: 'http://127.0.0.1:9090/metrics',
    simulator_url: null,
    dns: null,
    udp_ports: [],
    admin_token_file: null,
  });

  const startOther = async (...args: string[]): Promise<number> => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', ...args]);
    other = child;
    await new Promise((resolve) => child.once('spawn', resolve));
    return child.pid as number;
  };

  it('contains addresses for scripts, and is removed on a clean stop', () => {
    writeRunFile(dir, content(process.pid));
    expect(JSON.parse(readFileSync(join(dir, 'run.json'), 'utf8'))).toEqual(content(process.pid));
    removeRunFile(dir);
    expect(existsSync(join(dir, 'run.json'))).toBe(false);
  });

  it('is not removed if a newer server wrote the file', () => {
    writeRunFile(dir, content(1));
    removeRunFile(dir);
    expect(existsSync(join(dir, 'run.json'))).toBe(true);
  });

  // In a new container, the pid of a killed server is often the pid of a thread or process of the next server.
  it('does not block a start after a killed server, even if another server has its pid', async () => {
    writeRunFile(dir, content(await startOther('tunnel-server')));
    lockDataDir(dir).release();
  });

  it.each(['', 'not json', '{}', '{"pid":"7"}', '{"pid":-1}', '{"pid":999999999}'])(
    'does not block a start with the content %j',
    (text) => {
      writeFileSync(join(dir, 'run.json'), text);
      lockDataDir(dir).release();
    },
  );
});

describe('the lock of the data directory', () => {
  it('can be held only once, even by two starts at the same moment', () => {
    const lock = lockDataDir(dir);
    expect(() => lockDataDir(dir)).toThrow(`is in use by a running server (pid ${process.pid})`);
    lock.release();
    lockDataDir(dir).release();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('is taken over from a killed server, even if the pid is in use again', () => {
    const identity = { host: hostname(), pid: process.pid, started: 'of a process before this one', nonce: 'n' };
    writeFileSync(join(dir, 'server.lock'), JSON.stringify(identity));
    lockDataDir(dir).release();
  });
});
