import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Secret } from '@tunnel/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { closeSocketFolder, embeddedUrl, openSocketFolder, socketUrl } from './connection.ts';
import type { RunAs } from './run-as.ts';

describe('the connection file', () => {
  let dataDir: string;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'tunnel-connection-'));
    mkdirSync(join(dataDir, 'postgres-support'));
  });
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

  const write = (content: string): void => writeFileSync(join(dataDir, 'postgres-support/connection.json'), content);

  it('contains a URL with the escaped path of the socket', () => {
    expect(socketUrl('/a b/?&', new Secret('s-e_c')).reveal()).toBe(
      'postgres:///tunnel?user=tunnel&password=s-e_c&host=%2Fa%20b%2F%3F%26',
    );
  });

  it('is valid only while the server that wrote the file is running', () => {
    write(JSON.stringify({ url: 'postgres:///x', pid: process.pid }));
    expect(embeddedUrl(dataDir)?.reveal()).toBe('postgres:///x');
    write(JSON.stringify({ url: 'postgres:///x', pid: 999_999_999 }));
    expect(embeddedUrl(dataDir)).toBeNull();
  });

  it.each(['', '[]', '{"pid":1}', '{"url":7,"pid":1}'])('is ignored with the content %j', (text) => {
    write(text);
    expect(embeddedUrl(dataDir)).toBeNull();
  });

  it('gives no URL if the file is missing', () => {
    expect(embeddedUrl(dataDir)).toBeNull();
  });
});

describe('the folder of the database socket', () => {
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

  it('is below the data directory with mode 0700, and is kept', () => {
    const folder = join(dir, 'run');
    for (const _ of ['made', 'found']) {
      expect(openSocketFolder(folder, ourselves)).toBe(folder);
      expect(statSync(folder).mode & 0o777).toBe(0o700);
      chmodSync(folder, 0o755);
    }
    closeSocketFolder(folder, folder);
    expect(existsSync(folder)).toBe(true);
  });

  it('moves to the temporary folder if the path is too long, and is then removed at the end', () => {
    const long = join(dir, 'x'.repeat(100), 'run');
    const folder = openSocketFolder(long, ourselves);
    expect(Buffer.byteLength(join(folder, '.s.PGSQL.5432'))).toBeLessThanOrEqual(103);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(openSocketFolder(long, ourselves)).toBe(folder);
    closeSocketFolder(folder, long);
    expect(existsSync(folder)).toBe(false);
  });

  it('is refused if the path is a symbolic link', () => {
    mkdirSync(join(dir, 'elsewhere'));
    symlinkSync(join(dir, 'elsewhere'), join(dir, 'run'));
    expect(() => openSocketFolder(join(dir, 'run'), ourselves)).toThrow('belongs to another user');
  });

  it.runIf(process.getuid?.() === 0)('is refused if the folder belongs to another user', () => {
    mkdirSync(join(dir, 'run'));
    chownSync(join(dir, 'run'), 4242, 4242);
    expect(() => openSocketFolder(join(dir, 'run'), ourselves)).toThrow('belongs to another user');
  });
});
