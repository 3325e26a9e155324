import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadAdminToken } from './admin-token.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tunnel-server-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const NONE = new Secret('');

it('is generated once, for this user alone, and read again at the next start', () => {
  const first = loadAdminToken(NONE, dir);
  const second = loadAdminToken(NONE, dir);
  expect(first.token.reveal()).toMatch(/^[\w-]{43}$/);
  expect(second.token.reveal()).toBe(first.token.reveal());
  expect(first.file).toBe(join(dir, 'admin-token'));
  expect(statSync(join(dir, 'admin-token')).mode & 0o777).toBe(0o600);
});

it('of the config wins, and nothing is written', () => {
  const { token, file } = loadAdminToken(new Secret('from-the-config'), dir);
  expect(token.reveal()).toBe('from-the-config');
  expect(file).toBeNull();
  expect(() => readFileSync(join(dir, 'admin-token'))).toThrow('ENOENT');
});

it('that is an empty file is refused, not taken for a key', () => {
  writeFileSync(join(dir, 'admin-token'), '\n');
  expect(() => loadAdminToken(NONE, dir)).toThrow('its file admin-token is empty');
});

it('in a directory that is gone is refused with the directory', () => {
  expect(() => loadAdminToken(NONE, join(dir, 'gone'))).toThrow(`data directory ${join(dir, 'gone')} cannot be used`);
});
