import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readFirstAccountLink, removeFirstAccountLink, writeFirstAccountLink } from './first-account-link.ts';

it('the first-account link is readable by its owner only, until it is removed', () => {
  const dir = mkdtempSync(join(tmpdir(), 'tunnel-first-account-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  expect(readFirstAccountLink(dir)).toBeNull();
  writeFirstAccountLink(dir, 'https://a.example/app/signup?invite=one');
  writeFirstAccountLink(dir, 'https://a.example/app/signup?invite=two');
  expect(readFirstAccountLink(dir)).toBe('https://a.example/app/signup?invite=two');
  expect(statSync(join(dir, 'first-account-link')).mode & 0o777).toBe(0o600);
  removeFirstAccountLink(dir);
  removeFirstAccountLink(dir);
  expect(readFirstAccountLink(dir)).toBeNull();
});

it('a file of the server that is not a link, or a pipe, is ignored', () => {
  const dir = mkdtempSync(join(tmpdir(), 'tunnel-first-account-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'first-account-link');
  for (const text of [
    '',
    'root:x:0:0:root',
    'https://a.example/\u001b[2J',
    'https://a.example/\nmore',
    'x'.repeat(5000),
  ]) {
    writeFileSync(file, text);
    expect(readFirstAccountLink(dir)).toBeNull();
  }
  rmSync(file);
  expect(spawnSync('mkfifo', [file]).status).toBe(0);
  expect(readFirstAccountLink(dir)).toBeNull();
});
