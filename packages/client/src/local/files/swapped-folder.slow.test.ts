// A folder is replaced by an outside symlink and back thousands of times per second, while visitors request a file in the folder.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { temporaryDirectory } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { askFolder } from './ask-folder.fixture.ts';
import { ServedFolder } from './served-folder.ts';

const SWAPPER = `
const { renameSync } = require('node:fs');
const { workerData: { at, folder, link, stop } } = require('node:worker_threads');
while (Atomics.load(stop, 0) === 0) {
  renameSync(at, folder); renameSync(link, at);
  renameSync(at, link); renameSync(folder, at);
  Atomics.add(stop, 1, 1);
}`;

it('a served folder swapped for a symlink during requests never exposes the symlink target', async () => {
  const directory = await temporaryDirectory();
  const site = join(directory.path, 'site');
  mkdirSync(join(site, 'swapped'), { recursive: true });
  mkdirSync(join(directory.path, 'outside'));
  writeFileSync(join(site, 'swapped/x.txt'), 'inside');
  writeFileSync(join(directory.path, 'outside/x.txt'), 'SECRET');
  writeFileSync(join(directory.path, 'outside/secret-name'), '');
  const link = join(site, 'other');
  symlinkSync(join(directory.path, 'outside'), link);
  const stop = new Int32Array(new SharedArrayBuffer(8));
  const at = join(site, 'swapped');
  const worker = new Worker(SWAPPER, { eval: true, workerData: { at, folder: join(site, 'aside'), link, stop } });
  const folder = new ServedFolder({ dir: site, listing: true });
  const seen = new Set<string>();
  const until = Date.now() + 5000;
  const ask = async (path: string): Promise<void> => {
    while (Date.now() < until) {
      const { status, text } = await askFolder(folder, path);
      if (/SECRET|secret-name/.test(text)) seen.add('SECRET');
      else seen.add(`${status}${status === 200 && /inside|x\.txt/.test(text) ? ' inside' : ''}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, i) => ask(i % 2 === 0 ? '/swapped/x.txt' : '/swapped/')));
  Atomics.store(stop, 0, 1);
  await new Promise((resolve) => worker.once('exit', resolve));
  expect(Atomics.load(stop, 1)).toBeGreaterThan(100);
  expect([...seen]).toEqual(expect.arrayContaining(['200 inside', '404']));
  expect([...seen]).not.toContain('SECRET');
  await directory.close();
});
