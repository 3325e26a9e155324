import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { RunAs } from './run-as.ts';
import { closeSocketFolder, openSocketFolder } from './socket-folder.ts';

const ourselves: RunAs = {
  uid: process.getuid?.() ?? 0,
  gid: process.getgid?.() ?? 0,
  prefix: [],
  spawnIds: {},
};

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tunnel-socket-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

it('is below the data directory, for its owner alone, and stays there', () => {
  const folder = join(dir, 'run');
  for (const _ of ['made', 'found']) {
    expect(openSocketFolder(folder, ourselves)).toBe(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    chmodSync(folder, 0o755);
  }
  closeSocketFolder(folder, folder);
  expect(existsSync(folder)).toBe(true);
});

it('is in the folder for temporary files when the path would be too long, always the same, and goes', () => {
  const long = join(dir, 'x'.repeat(100), 'run');
  const folder = openSocketFolder(long, ourselves);
  expect(Buffer.byteLength(join(folder, '.s.PGSQL.5432'))).toBeLessThanOrEqual(103);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(openSocketFolder(long, ourselves)).toBe(folder);
  closeSocketFolder(folder, long);
  expect(existsSync(folder)).toBe(false);
});

it('that is a link is refused: whoever made it may lead us anywhere', () => {
  mkdirSync(join(dir, 'elsewhere'));
  symlinkSync(join(dir, 'elsewhere'), join(dir, 'run'));
  expect(() => openSocketFolder(join(dir, 'run'), ourselves)).toThrow('belongs to somebody else');
});

it.runIf(process.getuid?.() === 0)('that belongs to somebody else is refused', () => {
  mkdirSync(join(dir, 'run'));
  chownSync(join(dir, 'run'), 4242, 4242);
  expect(() => openSocketFolder(join(dir, 'run'), ourselves)).toThrow('belongs to somebody else');
});
