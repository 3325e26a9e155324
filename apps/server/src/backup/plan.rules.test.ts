import { describe, expect, it } from 'vitest';
import {
  backupName,
  compareBackupNames,
  type Entry,
  isBackupName,
  isUnfinishedName,
  planCluster,
  planData,
  restoredPath,
  unfinishedName,
} from './plan.rules.ts';

const file = (path: string): Entry => ({ path, kind: 'file' });
const files = (...paths: string[]): Entry[] => paths.map(file);

describe('the plan of a cluster', () => {
  it('copies tables, transaction states and settings, and the control file last', () => {
    const plan = planCluster(files('global/pg_control', 'PG_VERSION', 'base/5/1259', 'pg_xact/0000', 'global/1260'));
    expect(plan.files.map(({ from }) => from)).toEqual([
      'PG_VERSION',
      'base/5/1259',
      'global/1260',
      'pg_xact/0000',
      'global/pg_control',
    ]);
    expect(plan.files[1]).toEqual({ from: 'base/5/1259', to: 'cluster/base/5/1259' });
  });

  it.each([
    'pg_wal/000000010000000000000001',
    'pg_replslot/slot/state',
    'pg_stat_tmp/global.stat',
    'postmaster.pid',
    'postmaster.opts',
    'backup_label.old',
    'recovery.signal',
    'base/pgsql_tmp/pgsql_tmp12.0',
    'base/5/pgsql_tmp12.0',
    'base/5/pg_internal.init',
    'global/pg_internal.init.123',
    'base/5/t3_16384',
    'run/.s.PGSQL.5432.lock',
    'tunnel-spool/000000010000000000000001',
  ])('leaves out %s', (path) => {
    expect(planCluster(files(path, 'PG_VERSION')).files.map(({ from }) => from)).toEqual(['PG_VERSION']);
  });

  it('names links, which cannot be restored, but accepts a log folder on another disk', () => {
    const links: Entry[] = ['pg_tblspc/16400', 'base/5/1259', 'pg_wal'].map((path) => ({ path, kind: 'link' }));
    expect(planCluster(links).refused).toEqual(['pg_tblspc/16400', 'base/5/1259']);
  });

  it('leaves out sockets and pipes', () => {
    expect(planCluster([{ path: 'base/pipe', kind: 'other' }]).files).toEqual([]);
  });
});

describe('the plan of the data directory', () => {
  const present = files(
    ...['server.toml', 'master-key', 'certificate-key', 'login-secret', 'admin-token', 'edge-journal/journal-1.jsonl'],
    ...['postgres/PG_VERSION', 'postgres-support/password', 'postgres.unfinished.x/PG_VERSION', 'run.json'],
    ...['server.lock', 'server.lock.abc.new', 'mail/1.eml', 'crashes/1.json', 'names.json.new', 'local-ca/ca.pem'],
  );

  it('separates the keys from the rest, and leaves out the database, locks, mails and crash reports', () => {
    expect(planData(present, { keys: true }).files.map(({ to }) => to)).toEqual([
      'data/edge-journal/journal-1.jsonl',
      'data/local-ca/ca.pem',
      'data/server.toml',
      'keys/admin-token',
      'keys/certificate-key',
      'keys/login-secret',
      'keys/master-key',
    ]);
  });

  it('contains no key if the keys are kept elsewhere', () => {
    const paths = planData(present, { keys: false }).files.map(({ to }) => to);
    expect(paths.filter((path) => /key|secret|token/.test(path))).toEqual([]);
  });

  it('names links to folders', () => {
    expect(planData([{ path: 'certificates', kind: 'link' }], { keys: true }).refused).toEqual(['certificates']);
  });
});

describe('names of backups', () => {
  const at = Date.UTC(2026, 10, 19, 3, 15, 7, 999);

  it('are the time in UTC, with a number if the time is taken', () => {
    expect(backupName(at, new Set())).toBe('20261119T031507Z');
    expect(backupName(at, new Set(['20261119T031507Z', '20261119T031507Z-2']))).toBe('20261119T031507Z-3');
  });

  it('sort by time, then by number', () => {
    const names = ['20261119T031507Z-10', '20261119T031507Z', '20261119T031507Z-2', '20251119T031507Z'];
    expect(names.toSorted(compareBackupNames)).toEqual([names[3], names[1], names[2], names[0]]);
  });

  it('distinguish finished and unfinished backups from all other folders', () => {
    const name = backupName(at, new Set());
    expect([isBackupName(name), isUnfinishedName(name)]).toEqual([true, false]);
    expect([isBackupName(unfinishedName(name)), isUnfinishedName(unfinishedName(name))]).toEqual([false, true]);
    expect(['lost+found', '..', '20261119', `${name}/x`].filter((each) => isBackupName(each))).toEqual([]);
  });
});

it('a restore puts the cluster, the data and the keys in place, and nothing else', () => {
  expect(restoredPath('cluster/base/5/1259')).toBe('postgres/base/5/1259');
  expect(restoredPath('data/local-ca/ca.pem')).toBe('local-ca/ca.pem');
  expect(restoredPath('keys/master-key')).toBe('master-key');
  expect(restoredPath('wal/000000010000000000000001.gz')).toBeNull();
  expect(restoredPath('cluster')).toBeNull();
});
