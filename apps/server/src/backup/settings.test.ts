import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backupDirProblem, backupFolders, isOnSameDisk, logModeOf, makeBackupFolders } from './settings.ts';

let directory: TemporaryDirectory;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory.close());

const at = (...parts: string[]): string => join(directory.path, ...parts);
const problem = (dir: string): string | null => {
  const overrides = { data_dir: at('data'), backup: { dir } };
  return backupDirProblem(loadServerConfig({ env: {}, overrides }));
};

describe('the folder of the backups', () => {
  it('can be missing if the folder above exists, and is created for its user only', () => {
    expect(problem('')).toBeNull();
    expect(problem(at('backups'))).toBeNull();
    const folders = backupFolders(at('backups'));
    makeBackupFolders(folders);
    makeBackupFolders(folders);
    expect([folders.dir, folders.base, folders.wal].map((path) => statSync(path).mode & 0o777)).toEqual([
      ...[0o700, 0o700, 0o700],
    ]);
    expect(problem(at('backups'))).toBeNull();
  });

  it('must not be below a missing folder, which is usually an unmounted disk', () => {
    expect(problem(at('disk', 'backups'))).toMatch(/folder above does not exist/);
    expect(() => makeBackupFolders(backupFolders(at('disk', 'backups')))).toThrow('ENOENT');
  });

  it('must be a folder', () => {
    writeFileSync(at('file'), '');
    expect(problem(at('file'))).toMatch(/there is a file/);
    expect(problem(at('file', 'backups'))).toMatch(/part of the path is a file/);
  });

  it('must not be the data directory, also not behind a symbolic link', () => {
    mkdirSync(at('data', 'inner'), { recursive: true });
    symlinkSync(at('data', 'inner'), at('link'));
    expect(problem(at('link'))).toMatch(/outside of `data_dir`/);
    expect(problem(at('link', 'backups'))).toMatch(/outside of `data_dir`/);
    symlinkSync(at('elsewhere'), at('data', 'out'));
    expect(problem(at('data-too'))).toBeNull();
  });

  it.skipIf(process.getuid?.() === 0)('must be writable', () => {
    mkdirSync(at('closed'));
    chmodSync(at('closed'), 0o500);
    expect(problem(at('closed'))).toMatch(/permission denied/);
  });

  it('is on the same disk as a folder beside it', () => {
    mkdirSync(at('data'));
    mkdirSync(at('backups'));
    expect(isOnSameDisk(at('backups'), at('data'))).toBe(true);
    expect(isOnSameDisk(at('missing'), at('data'))).toBe(false);
  });
});

it('the log is archived only with backups, and only if the settings want to', () => {
  const mode = (backup: object) => logModeOf(loadServerConfig({ env: {}, overrides: { backup } }).backup);
  expect(mode({})).toBe('minimal');
  expect(mode({ wal: false })).toBe('minimal');
  expect(mode({ dir: '/srv/backups' })).toBe('archive');
  expect(mode({ dir: '/srv/backups', wal: false })).toBe('replica');
});
