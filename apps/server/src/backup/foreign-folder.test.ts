import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type Logger, systemClock } from '@tunnel/runtime';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createBackup } from './create.ts';
import { manifestText } from './manifest.rules.ts';
import { applyRetention } from './retention.ts';
import { readBackups, StoredWal } from './stored-backups.ts';
import { verifyBackups } from './verify.ts';

const logger = { info: () => {} } as unknown as Logger;

let directory: TemporaryDirectory;
let backupDir: string;
let clusterDir: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  backupDir = join(directory.path, 'backups');
  clusterDir = join(directory.path, 'data/postgres');
  mkdirSync(join(backupDir, 'wal'), { recursive: true });
  writeControlFile(clusterDir, '1st-base');
});
afterEach(() => directory.close());

const writeControlFile = (cluster: string, identity: string): void => {
  mkdirSync(join(cluster, 'global'), { recursive: true });
  writeFileSync(join(cluster, 'global/pg_control'), identity.repeat(10));
};

/** Writes a finished backup of a database. */
const backupOf = (identity: string, name: string): string => {
  const folder = join(backupDir, 'base', name);
  writeControlFile(join(folder, 'cluster'), identity);
  const at = { segment: '000000010000000000000009', lsn: '0/9000028', timeline: 1 };
  const times = { started_at: '2026-11-19T03:15:00Z', finished_at: '2026-11-19T03:16:00Z' };
  const positions = { wal_start: at, wal_end: { ...at, lsn: '0/9000128' } };
  const head = { version: '0.2.0', postgres: 18, name, ...times, ...positions, keys: true };
  writeFileSync(join(folder, 'backup_manifest.json'), manifestText({ ...head, files: [] }));
  return folder;
};

const names = (): string[] => readdirSync(join(backupDir, 'base')).sort();

describe('a folder with backups of another database', () => {
  const [FIRST, SECOND] = ['20261118T031500Z', '20261119T031500Z'] as const;

  it('keeps all of them: a server that lost its data and began anew must not delete its last good backups', async () => {
    backupOf('2nd-base', FIRST);
    backupOf('1st-base', SECOND);
    writeFileSync(join(backupDir, 'wal/000000010000000000000001.gz'), '');
    const retention = { backupDir, clusterDir, keep: 1, logger };
    await expect(applyRetention(retention)).rejects.toThrow(/20261118T031500Z is a backup of another database/);
    expect([names(), readdirSync(join(backupDir, 'wal'))]).toEqual([[FIRST, SECOND], ['000000010000000000000001.gz']]);
    writeControlFile(join(backupDir, 'base', FIRST, 'cluster'), '1st-base');
    await applyRetention(retention);
    expect(names()).toEqual([SECOND]);
  });

  it('gets no further backup', async () => {
    backupOf('2nd-base', FIRST);
    const connect = () => Promise.reject(new Error('connected'));
    const folders = { clusterDir, dataDir: join(directory.path, 'data'), backupDir, walDir: null };
    const create = createBackup({ ...folders, connect, clock: systemClock, keys: true, version: '0.2.0', logger });
    await expect(create).rejects.toMatchObject({
      code: 'CONFIG_BACKUP',
      message: expect.stringContaining('separate folder'),
    });
    expect(names()).toEqual([FIRST]);
  });
});

describe('a file of a backup that is no file, or too large', () => {
  const NAME = '20261119T031500Z';
  const problemOf = async (): Promise<string | null | undefined> => (await readBackups(backupDir))[0]?.problem;

  it('is reported and never waited for', async () => {
    const folder = backupOf('1st-base', NAME);
    execFileSync('sh', ['-c', 'rm "$0" && mkfifo "$0"', join(folder, 'backup_manifest.json')]);
    expect(await problemOf()).toMatch(/backup_manifest\.json cannot be read: not a regular file/);
    const segment = { timeline: 1, number: 9 };
    execFileSync('mkfifo', [join(backupDir, 'wal/000000010000000000000009.gz')]);
    const wal = await StoredWal.open(backupDir, null);
    await expect(wal.read(segment)).rejects.toThrow(/not a regular file/);
  });

  it('is not read into memory', async () => {
    const folder = backupOf('1st-base', NAME);
    truncateSync(join(folder, 'backup_manifest.json'), 1e9);
    expect(await problemOf()).toMatch(/1000000000 bytes/);
    const path = join(backupDir, 'wal/000000010000000000000009.gz');
    writeFileSync(path, gzipSync('x'));
    truncateSync(path, 1e9);
    const wal = await StoredWal.open(backupDir, null);
    await expect(wal.read({ timeline: 1, number: 9 })).rejects.toThrow(/1000000000 bytes/);
  });

  it('is a problem that verify names', async () => {
    const folder = backupOf('1st-base', NAME);
    const pipe = join(folder, 'cluster/pipe');
    const file = { path: 'cluster/pipe', bytes: 0, sha256: '0'.repeat(64) };
    const manifest = (await readBackups(backupDir))[0]?.manifest;
    if (manifest == null) throw new Error('no manifest');
    writeFileSync(join(folder, 'backup_manifest.json'), manifestText({ ...manifest, files: [file] }));
    execFileSync('mkfifo', [pipe]);
    const verified = await verifyBackups({ backupDir, clock: systemClock });
    expect(verified?.[0]?.problems[0]).toBe(`${pipe} cannot be read: ${pipe} is not a regular file`);
  });
});
