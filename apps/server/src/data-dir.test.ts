import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openDataDir } from './data-dir.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tunnel-server-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

it('is made with its parents, for this user alone', () => {
  const path = openDataDir(join(dir, 'a/b'));
  expect(path).toBe(join(dir, 'a/b'));
  expect(statSync(path).mode & 0o777).toBe(0o700);
});

it('that is a file is refused in words', () => {
  writeFileSync(join(dir, 'file'), '');
  expect(() => openDataDir(join(dir, 'file'))).toThrow('cannot be used: it is not a directory');
  expect(() => openDataDir(join(dir, 'file/below'))).toThrow('cannot be used: it is not a directory');
});
