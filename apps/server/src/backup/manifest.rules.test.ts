import { describe, expect, it } from 'vitest';
import { bytesOf, manifestText, type NewManifest, readManifest } from './manifest.rules.ts';

const MANIFEST: NewManifest = {
  version: '1.0.0',
  postgres: 18,
  name: '20261119T031507Z',
  started_at: '2026-11-19T03:15:07.000Z',
  finished_at: '2026-11-19T03:15:09.000Z',
  wal_start: { segment: '000000010000000000000002', lsn: '0/2000028', timeline: 1 },
  wal_end: { segment: '000000010000000000000002', lsn: '0/2000158', timeline: 1 },
  files: [
    { path: 'cluster/PG_VERSION', bytes: 3, sha256: 'a'.repeat(64) },
    { path: 'data/server.toml', bytes: 39, sha256: 'b'.repeat(64) },
  ],
  keys: true,
};

const changed = (change: object): string =>
  JSON.stringify({ ...(JSON.parse(manifestText(MANIFEST)) as object), ...change });

const file = (path: string): object => ({ path, bytes: 1, sha256: 'a'.repeat(64) });

describe('a manifest', () => {
  it('is read as it was written, one line per file', () => {
    const text = manifestText(MANIFEST);
    expect(readManifest(text)).toEqual({ manifest: { format: 1, ...MANIFEST } });
    expect(text.split('\n').filter((line) => line.includes('sha256'))).toHaveLength(2);
    expect(bytesOf(MANIFEST)).toBe(42);
  });

  it('without files is valid JSON', () => {
    expect(readManifest(manifestText({ ...MANIFEST, files: [] }))).toHaveProperty('manifest.files', []);
  });

  it.each([
    ['../outside'],
    ['cluster/../../outside'],
    ['/etc/passwd'],
    ['cluster//x'],
    ['cluster\\x'],
    ['cluster/\0'],
    [''],
    ['.'],
  ])('with the path %j is refused, because a restore would write outside of its folder', (path) => {
    expect(readManifest(changed({ files: [file(path)] }))).toEqual({
      problem: 'its value `files` is missing or invalid',
    });
  });

  it.each([
    ['files', { files: [file('cluster/x'), file('cluster/x')] }],
    ['files', { files: [{ ...file('cluster/x'), sha256: 'A'.repeat(64) }] }],
    ['files', { files: [{ ...file('cluster/x'), bytes: -1 }] }],
    ['name', { name: '..' }],
    ['wal_start', { wal_start: { ...MANIFEST.wal_start, timeline: 2 } }],
    ['wal_end', { wal_end: null }],
    ['finished_at', { finished_at: 'yesterday' }],
    ['keys', { keys: undefined }],
  ])('with an invalid value of %s is refused', (key, change) => {
    expect(readManifest(changed(change))).toEqual({ problem: `its value \`${key}\` is missing or invalid` });
  });

  it('of another format, or cut off, is refused', () => {
    expect(readManifest(changed({ format: 2 }))).toMatchObject({ problem: expect.stringContaining('format 2') });
    expect(readManifest(manifestText(MANIFEST).slice(0, -10))).toEqual({ problem: 'it is not valid JSON' });
    expect(readManifest('[]')).toEqual({ problem: 'it is not valid JSON' });
  });
});
