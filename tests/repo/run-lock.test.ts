// The lock of installs and builds: a single run at a time, and no wait for a process that has ended.
import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

const { withRunLock } = (await import(join(ROOT, 'scripts/lib/run-lock.mjs'))) as {
  withRunLock: <T>(file: string, onWait: (pid: string) => void, work: () => Promise<T>) => Promise<T>;
};

let dir: TemporaryDirectory;
let file: string;
let waited: string[];
beforeEach(async () => {
  dir = await temporaryDirectory();
  file = join(dir.path, 'run.lock');
  waited = [];
});
afterEach(() => dir.close());

const lock = (work: () => Promise<string>): Promise<string> => withRunLock(file, (pid) => waited.push(pid), work);

it('a second run waits for the first, and reports its pid once', async () => {
  let finish: () => void = () => {};
  const first = lock(() => new Promise((resolve) => (finish = () => resolve('first'))));
  const second = lock(async () => 'second');
  await eventually(() => expect(waited).toEqual([String(process.pid)]));
  finish();
  expect(await Promise.all([first, second])).toEqual(['first', 'second']);
  expect([waited.length, existsSync(file)]).toEqual([1, false]);
});

it('a lock of a killed process does not block the next run', async () => {
  writeFileSync(file, '999999999\n');
  expect([await lock(async () => 'done'), waited]).toEqual(['done', []]);
});

it('a lock without a heartbeat does not block the next run, even if a different process has the pid', async () => {
  writeFileSync(file, `${process.pid}\n`);
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(file, longAgo, longAgo);
  expect([await lock(async () => 'done'), waited]).toEqual(['done', []]);
  expect(existsSync(file)).toBe(false);
});
