import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isProcessAlive, lockHolder, takeLock } from './file-lock.ts';

const FOREIGN_MS = 60_000;

let dir: string;
let path: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tunnel-lock-'));
  path = join(dir, 'lock.json');
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

const startProcess = async (): Promise<ChildProcess> => {
  const child = spawn('sleep', ['60']);
  children.push(child);
  await once(child, 'spawn');
  return child;
};

const textOf = (): Record<string, unknown> => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
const write = (text: object): void => writeFileSync(path, JSON.stringify({ nonce: 'old', host: hostname(), ...text }));

/** Returns the start time of a process, read from /proc. */
const startOf = (pid: number): string => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${ticks}`;
};

describe('a file lock', () => {
  it('has one holder until released', () => {
    const lock = takeLock(path);
    expect(lock).not.toBeNull();
    expect([takeLock(path), lockHolder(path)]).toEqual([null, process.pid]);
    lock?.release();
    expect(lockHolder(path)).toBeNull();
    expect(takeLock(path)).not.toBeNull();
    expect(readdirSync(dir)).toEqual(['lock.json']);
  });

  it('is touched by its holder only', () => {
    const lock = takeLock(path);
    const ageMs = (): number => Date.now() - statSync(path).mtimeMs;
    const makeOld = (): void => utimesSync(path, new Date(0), new Date(0));
    makeOld();
    lock?.touch();
    expect(ageMs()).toBeLessThan(60_000);
    write({ pid: process.pid, started: '', nonce: 'another' });
    makeOld();
    lock?.touch();
    expect(ageMs()).toBeGreaterThan(60_000);
  });

  it.each([
    '',
    'not json',
    '{}',
    '{"pid":999999999,"began":"once"}',
    `{"host":"${hostname()}","pid":999999999,"started":"x/1","nonce":"n"}`,
    `{"host":"${hostname()}","pid":${process.pid},"started":"before the boot","nonce":"n"}`,
  ])('with the content %j is stale and can be taken over', (text) => {
    writeFileSync(path, text);
    expect(lockHolder(path)).toBeNull();
    expect(takeLock(path)).not.toBeNull();
    expect(textOf()).toMatchObject({ pid: process.pid });
    expect(readdirSync(dir)).toEqual(['lock.json']);
  });

  it('that is a pipe is an error, and is not waited for', () => {
    execFileSync('mkfifo', [path]);
    expect(() => takeLock(path)).toThrow(/not a regular file/);
    expect(() => lockHolder(path)).toThrow(/not a regular file/);
  });

  it('is not released by a previous holder', () => {
    const lock = takeLock(path);
    write({ pid: 1, started: 'at the boot' });
    lock?.release();
    expect(existsSync(path)).toBe(true);
  });

  it.runIf(existsSync('/proc/self/stat'))('is held by its process until that process is killed', async () => {
    const child = await startProcess();
    const pid = child.pid!;
    write({ pid, started: startOf(pid) });
    expect([takeLock(path), lockHolder(path)]).toEqual([null, pid]);
    // The process id is alive, but now belongs to a later process.
    write({ pid, started: 'boot/1' });
    expect(lockHolder(path)).toBeNull();
    write({ pid, started: startOf(pid) });
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    expect(takeLock(path)).not.toBeNull();
  });

  it.runIf(existsSync('/proc/self/stat'))(
    'is compatible with locks of earlier versions, in both directions',
    async () => {
      const began = (pid: number): string => startOf(pid).replace('/', ' ');
      const lock = takeLock(path);
      expect(textOf()).toMatchObject({ pid: process.pid, began: began(process.pid) });
      lock?.release();
      const child = await startProcess();
      const pid = child.pid!;
      writeFileSync(path, JSON.stringify({ pid, began: began(pid) }));
      expect([takeLock(path), lockHolder(path)]).toEqual([null, pid]);
      writeFileSync(path, JSON.stringify({ pid, began: 'boot 1' }));
      expect(takeLock(path)).not.toBeNull();
      expect(readdirSync(dir)).toEqual(['lock.json']);
    },
  );

  it('can be taken over even if an earlier takeover was interrupted', () => {
    write({ pid: 999_999_999, started: 'x/1' });
    writeFileSync(`${path}.old`, JSON.stringify({ host: hostname(), pid: 999_999_998, started: 'x/1', nonce: 'half' }));
    expect(takeLock(path)).not.toBeNull();
    expect(readdirSync(dir)).toEqual(['lock.json']);
  });

  it('of another machine is valid while it is touched', () => {
    write({ host: 'elsewhere', pid: 999_999_999, started: 'x/1' });
    expect([takeLock(path, FOREIGN_MS), lockHolder(path, FOREIGN_MS)]).toEqual([null, 999_999_999]);
    const longAgo = new Date(Date.now() - 2 * FOREIGN_MS);
    utimesSync(path, longAgo, longAgo);
    expect(takeLock(path, FOREIGN_MS)).not.toBeNull();
  });

  it('of this machine depends on its process only, even if the host name has changed', () => {
    const lock = takeLock(path);
    writeFileSync(path, JSON.stringify({ ...textOf(), host: 'elsewhere' }));
    expect(takeLock(path)).toBeNull();
    lock?.release();
    write({ host: 'elsewhere', pid: 999_999_999, started: 'x/1' });
    expect(takeLock(path)).not.toBeNull();
  });
});

it('isProcessAlive is true until the process has ended', async () => {
  expect(isProcessAlive(process.pid)).toBe(true);
  expect(isProcessAlive(1)).toBe(true);
  expect(isProcessAlive(999_999_999)).toBe(false);
});
