// Compiled code of bundles: kept and used only where no other user can write, and never a reason to fail.
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openCacheFolder, readCode, writeCode } from './code-cache.ts';

const uid = process.getuid?.() ?? 0;
let home: TemporaryDirectory;
beforeEach(async () => {
  home = await temporaryDirectory();
  chmodSync(home.path, 0o755);
});
afterEach(() => home.close());

const inHome = (...parts: string[]) => join(home.path, ...parts);
const open = () => openCacheFolder({ uid, home: home.path });

describe.skipIf(process.platform === 'win32')('the folder for compiled code', () => {
  it('is in the home folder, and only its owner can open it', () => {
    expect(open()).toBe(inHome('.cache/hatchway'));
    expect(statSync(inHome('.cache/hatchway')).mode & 0o777).toBe(0o700);
    expect(open()).toBe(inHome('.cache/hatchway'));
  });

  it('is not used in the home folder of another user', () => {
    expect(openCacheFolder({ uid: uid + 1, home: home.path })).toBeNull();
    expect(readdirSync(home.path)).toEqual([]);
  });

  it.each(['.', '.cache', '.cache/hatchway'])('is not used if others can write to %s', (path) => {
    open();
    chmodSync(inHome(path), 0o770);
    expect(open()).toBeNull();
  });

  it.each(['.cache', '.cache/hatchway'])('is not used if %s is a link', (path) => {
    mkdirSync(inHome('elsewhere'), { mode: 0o700 });
    mkdirSync(inHome(path, '..'), { recursive: true, mode: 0o700 });
    symlinkSync(inHome('elsewhere'), inHome(path));
    expect(open()).toBeNull();
  });

  it.each(['.cache', '.cache/hatchway'])('is not used if %s is a file', (path) => {
    mkdirSync(inHome(path, '..'), { recursive: true, mode: 0o700 });
    writeFileSync(inHome(path), '');
    expect(open()).toBeNull();
  });

  it('is not used without a home folder', () => {
    expect(openCacheFolder({ uid, home: inHome('missing') })).toBeNull();
    expect(openCacheFolder({ uid, home: '/' })).toBeNull();
  });
});

describe.skipIf(process.platform === 'win32')('a file of compiled code', () => {
  const code = Buffer.from('compiled code');
  const file = () => inHome('code');

  it('is private to the user, and is read as it was written', () => {
    writeCode(file(), code);
    expect(readCode(file(), uid)).toEqual(code);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(readdirSync(home.path)).toEqual(['code']);
  });

  it.each<[string, () => void]>([
    ['is missing', () => rmSync(file())],
    ['is empty', () => truncateSync(file(), 0)],
    ['has only a checksum', () => truncateSync(file(), 4)],
    ['is truncated', () => truncateSync(file(), 10)],
    ['has a changed byte', () => writeFileSync(file(), readFileSync(file()).fill(0, 3, 4))],
    ['is readable by others', () => chmodSync(file(), 0o644)],
    ['is writable by a group', () => chmodSync(file(), 0o620)],
    ['has a second name', () => linkSync(file(), inHome('other'))],
    [
      'is a folder',
      () => {
        rmSync(file());
        mkdirSync(file(), { mode: 0o700 });
      },
    ],
    [
      'is a link',
      () => {
        renameSync(file(), inHome('other'));
        symlinkSync(inHome('other'), file());
      },
    ],
  ])('is not used if it %s', (_what, damage) => {
    writeCode(file(), code);
    damage();
    expect(readCode(file(), uid)).toBeUndefined();
  });

  it('is not used if it belongs to another user', () => {
    writeCode(file(), code);
    expect(readCode(file(), uid + 1)).toBeUndefined();
  });

  it('leaves nothing behind if it cannot be written', () => {
    mkdirSync(join(file(), 'full'), { recursive: true });
    expect(() => writeCode(file(), code)).toThrow();
    expect(readdirSync(home.path)).toEqual(['code']);
  });

  it('replaces the oldest of 16 files, and of the folders that earlier releases made', () => {
    mkdirSync(inHome('100-200'));
    writeFileSync(inHome('100-200/code'), '');
    utimesSync(inHome('100-200'), 1, 1);
    for (let index = 0; index < 15; index++) {
      writeCode(inHome(`code-${index}`), code);
      utimesSync(inHome(`code-${index}`), 10 + index, 10 + index);
    }
    expect(existsSync(inHome('100-200'))).toBe(true);
    writeCode(inHome('new'), code);
    writeCode(inHome('newer'), code);
    expect(existsSync(inHome('100-200'))).toBe(false);
    expect(existsSync(inHome('code-0'))).toBe(false);
    expect(readdirSync(home.path)).toHaveLength(16);
  });
});
