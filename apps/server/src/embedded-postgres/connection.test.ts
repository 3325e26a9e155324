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

  it('names a socket in a url, whatever is in its path', () => {
    expect(socketUrl('/a b/?&', new Secret('s-e_c')).reveal()).toBe(
      'postgres:///tunnel?user=tunnel&password=s-e_c&host=%2Fa%20b%2F%3F%26',
    );
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
});

describe('the folder of the socket', () => {
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
    expect(() => openSocketFolder(join(dir, 'run'), ourselves)).toThrow('belongs to another user');
  });

  it.runIf(process.getuid?.() === 0)('that belongs to somebody else is refused', () => {
    mkdirSync(join(dir, 'run'));
    chownSync(join(dir, 'run'), 4242, 4242);
    expect(() => openSocketFolder(join(dir, 'run'), ourselves)).toThrow('belongs to another user');
  });
});
