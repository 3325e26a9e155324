import { mkdtempSync, rmSync, statSync } from 'node:fs';
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
