import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { embeddedUrl, socketUrl } from './connection-file.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'tunnel-connection-'));
  mkdirSync(join(dataDir, 'postgres-support'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const write = (content: string): void => writeFileSync(join(dataDir, 'postgres-support/connection.json'), content);

it('names a socket in a url, whatever is in its path', () => {
  expect(socketUrl('/a b/?&').reveal()).toBe('postgres:///tunnel?user=tunnel&host=%2Fa%20b%2F%3F%26');
});

it('is believed while the process that wrote it lives', () => {
  write(JSON.stringify({ url: 'postgres:///x', pid: process.pid }));
  expect(embeddedUrl(dataDir)?.reveal()).toBe('postgres:///x');
  write(JSON.stringify({ url: 'postgres:///x', pid: 999_999_999 }));
  expect(embeddedUrl(dataDir)).toBeNull();
});

it.each(['', '[]', '{"pid":1}', '{"url":7,"pid":1}'])('that says %j names nothing', (text) => {
  write(text);
  expect(embeddedUrl(dataDir)).toBeNull();
});

it('that is not there names nothing', () => {
  expect(embeddedUrl(dataDir)).toBeNull();
});
