import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { createLogger } from '@tunnel/runtime';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { writeRelease } from './release.fixture.ts';
import type { ReleaseFile } from './release.rules.ts';
import { ReleaseFolder, readRelease } from './release-folder.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
let temporary: TemporaryDirectory;
let dir: string;
beforeEach(async () => {
  temporary = await temporaryDirectory();
  dir = join(temporary.path, 'release');
  mkdirSync(dir);
});
afterEach(() => temporary.close());

const folderOf = (path = dir) => new ReleaseFolder({ dir: path, logger });
const first = async (folder: ReleaseFolder): Promise<ReleaseFile> => {
  const file = (await folder.read())?.files.find(({ name }) => name === 'tunnel-linux-x64');
  if (file === undefined) throw new Error('the release has no such file');
  return file;
};

describe('the release of a folder', () => {
  it('is none without a folder, without a manifest and with a manifest that cannot be read', async () => {
    expect(await folderOf('').read()).toBeNull();
    expect(await folderOf(join(dir, 'nowhere')).read()).toBeNull();
    expect(await folderOf().read()).toBeNull();
    writeFileSync(join(dir, 'manifest.json'), '{');
    expect(await folderOf().read()).toBeNull();
  });

  it('is read again after an error of the machine, such as too many open files, with one line in the log', async () => {
    writeRelease(dir);
    const warn = vi.fn();
    let error: Error | null = Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
    const read = async (path: string) => {
      if (error !== null) throw error;
      return readRelease(path);
    };
    const folder = new ReleaseFolder({ dir, logger: { ...logger, warn }, read });
    expect([await folder.read(), await folder.read()]).toEqual([null, null]);
    expect(warn).toHaveBeenCalledTimes(1);
    error = null;
    expect((await folder.read())?.version).toBe('1.2.3');
  });

  it('follows the folder while the server runs', async () => {
    const folder = folderOf();
    expect(await folder.read()).toBeNull();
    writeRelease(dir);
    expect((await folder.read())?.version).toBe('1.2.3');
    writeRelease(dir, { version: '1.3.0' });
    expect((await folder.read())?.version).toBe('1.3.0');
    rmSync(join(dir, 'manifest.json'));
    expect(await folder.read()).toBeNull();
  });
});

describe('a file of the folder', () => {
  const refused = { code: 'DOWNLOAD_UNAVAILABLE' };

  it('is opened with an ETag that changes with every write', async () => {
    writeRelease(dir);
    const folder = folderOf();
    const file = await first(folder);
    const opened = await folder.open(file);
    expect(opened.etag).toMatch(/^"[0-9a-f]{32}"$/);
    expect(await opened.isUnchanged()).toBe(true);
    utimesSync(join(dir, file.path), 1, 1);
    expect(await opened.isUnchanged()).toBe(false);
    await opened.handle.close();
    const again = await folder.open(file);
    expect(again.etag).not.toBe(opened.etag);
    await again.handle.close();
  });

  it('has changed and gets another ETag after a write that kept the time of last change, as of rsync --inplace', async () => {
    writeRelease(dir);
    const folder = folderOf();
    const file = await first(folder);
    const path = join(dir, file.path);
    utimesSync(path, 1, 1);
    const opened = await folder.open(file);
    // The clock of a file system can have steps of several milliseconds.
    await setTimeout(50);
    writeFileSync(path, 'x'.repeat(file.bytes));
    utimesSync(path, 1, 1);
    expect(await opened.isUnchanged()).toBe(false);
    await opened.handle.close();
    const again = await folder.open(file);
    expect(again.etag).not.toBe(opened.etag);
    rmSync(path);
    expect(await again.isUnchanged()).toBe(true);
    await again.handle.close();
  });

  it('is unavailable when it is missing, has another size or is no file', async () => {
    writeRelease(dir);
    const folder = folderOf();
    const file = await first(folder);
    const path = join(dir, file.path);
    truncateSync(path, 3);
    await expect(folder.open(file)).rejects.toMatchObject(refused);
    rmSync(path);
    await expect(folder.open(file)).rejects.toMatchObject(refused);
    mkdirSync(path);
    await expect(folder.open(file)).rejects.toMatchObject(refused);
    rmSync(path, { recursive: true });
    execFileSync('mkfifo', [path]);
    await expect(folder.open(file)).rejects.toMatchObject(refused);
  });

  it('is unavailable behind a link, of the file or of a folder on the way', async () => {
    writeRelease(dir);
    const folder = folderOf();
    const file = await first(folder);
    const outside = join(temporary.path, 'outside');
    renameSync(join(dir, 'executables'), outside);
    symlinkSync(outside, join(dir, 'executables'));
    await expect(folder.open(file)).rejects.toMatchObject(refused);
    rmSync(join(dir, 'executables'));
    mkdirSync(join(dir, 'executables'));
    symlinkSync(join(outside, file.name), join(dir, file.path));
    await expect(folder.open(file)).rejects.toMatchObject(refused);
  });

  it('is opened where downloads_dir is a link', async () => {
    writeRelease(dir);
    const link = join(temporary.path, 'link');
    symlinkSync(dir, link);
    const folder = folderOf(link);
    const opened = await folder.open(await first(folder));
    await opened.handle.close();
  });
});
