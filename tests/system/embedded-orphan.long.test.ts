import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';
import { eventually, type Program, spawnProgram } from '@tunnel/testkit';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { embeddedUrl } from '../../apps/server/src/embedded-postgres/connection.ts';
import { findPackage } from '../../apps/server/src/embedded-postgres/programs.ts';
import { ROOT } from '../repo/checkout.fixture.ts';
import { copyDatabase } from './database-template.fixture.ts';
import { ask, commandOf, DatabaseHarness, processesOf, serversOn } from './embedded-database.fixture.ts';

const harness = new DatabaseHarness();
const keeperFile = harness.folder('keeper.mjs');
const programs: Program[] = [];

beforeAll(async () => {
  await build({
    absWorkingDir: ROOT,
    entryPoints: [join(ROOT, 'tests/system/database-process.fixture.ts')],
    outfile: keeperFile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    conditions: ['source'],
    logLevel: 'warning',
    banner: { js: "import { createRequire as __r } from 'node:module'; const require = __r(import.meta.url);" },
  });
});
afterEach(async () => {
  for (const program of programs.splice(0)) await program.close();
  await harness.stopAll();
});
afterAll(() => harness.remove());

/** Returns a data directory with an existing cluster. */
const usedFolder = async (): Promise<string> => {
  const folder = harness.folder();
  await copyDatabase(folder);
  return folder;
};

const keep = async (dataDir: string): Promise<{ program: Program; pid: number; url: Secret }> => {
  const args = [keeperFile, dataDir, findPackage() ?? ''];
  const program = await spawnProgram({ command: process.execPath, args });
  programs.push(program);
  const [, pid, url = ''] = await program.waitForLine(/^ready (\d+) (.*)$/);
  return { program, pid: Number(pid), url: new Secret(url) };
};

const isWatchdog = (pid: number): boolean => commandOf(String(pid)).includes('watchdog');

it('a keeper started after a killed keeper has all data and the only database server, and its own kill leaves no server', async () => {
  const dataDir = await usedFolder();
  const first = await keep(dataDir);
  await ask(first.url, 'create table kept as select 42 as n');
  first.program.signalGroup('SIGKILL');
  await first.program.waitForExit();
  const second = await keep(dataDir);
  expect(await ask(second.url, 'select n from kept')).toBe(42);
  expect(serversOn(dataDir)).toEqual([second.pid]);
  expect(processesOf(dataDir).length).toBeGreaterThan(0);
  second.program.signalGroup('SIGKILL');
  await eventually(() => expect(processesOf(dataDir)).toEqual([]), { timeoutMs: 30_000 });
  expect(embeddedUrl(dataDir)).toBeNull();
});

it('a database server without keeper and watchdog is stopped by the next start', async () => {
  const dataDir = await usedFolder();
  const first = await keep(dataDir);
  const watchdogs = processesOf(dataDir).filter(isWatchdog);
  expect(watchdogs).toHaveLength(1);
  await ask(first.url, 'create table kept as select 42 as n');
  for (const pid of watchdogs) process.kill(pid, 'SIGKILL');
  first.program.signalGroup('SIGKILL');
  await first.program.waitForExit();
  expect(serversOn(dataDir)).toEqual([first.pid]);
  const second = await keep(dataDir);
  expect(await ask(second.url, 'select n from kept')).toBe(42);
  expect(serversOn(dataDir)).toEqual([second.pid]);
  expect(second.program.stderr.join('\n')).toContain('an earlier run');
});

it('of two keepers started at once on an empty directory, exactly one gets the database', async () => {
  const dataDir = harness.folder();
  const args = [keeperFile, dataDir, findPackage() ?? ''];
  const both = await Promise.all([1, 2].map(() => spawnProgram({ command: process.execPath, args })));
  programs.push(...both);
  const lines = await Promise.all(both.map((each) => each.waitForLine(/^(ready|refused) .*$/)));
  expect(new Set(lines.map((line) => line[1]))).toEqual(new Set(['ready', 'refused']));
  expect(lines.find((line) => line[1] === 'refused')?.[0]).toContain('is in use by a running server');
  const url = embeddedUrl(dataDir);
  expect(url && (await ask(url, 'select 1'))).toBe(1);
  expect(serversOn(dataDir)).toHaveLength(1);
});

it('a signal to the process group, as from Ctrl-C, reaches the keeper, not the database', async () => {
  const dataDir = await usedFolder();
  const { program, url } = await keep(dataDir);
  program.signalGroup('SIGTERM');
  await program.waitForExit();
  expect(program.stderr.join('\n')).not.toContain('unexpectedly');
  await expect(ask(url, 'select 1')).rejects.toThrow();
  await eventually(() => expect(processesOf(dataDir)).toEqual([]));
});
