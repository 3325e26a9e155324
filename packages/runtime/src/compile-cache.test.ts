// The folder for compiled code, which is used only if no other user can put code there.
import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openCacheFolder } from './compile-cache.ts';

const uid = process.getuid?.() ?? 0;
let home: TemporaryDirectory;
beforeEach(async () => {
  home = await temporaryDirectory();
  chmodSync(home.path, 0o755);
});
afterEach(() => home.close());

const open = (name = 'a') => openCacheFolder(name, { uid, home: home.path });
const inHome = (...parts: string[]) => join(home.path, ...parts);

describe.skipIf(process.platform === 'win32')('the folder for compiled code', () => {
  it('is in the home folder, and only its owner can open it', () => {
    expect(open()).toBe(inHome('.cache/hatchway/a'));
    expect(statSync(inHome('.cache/hatchway/a')).mode & 0o777).toBe(0o700);
    expect(open()).toBe(inHome('.cache/hatchway/a'));
  });

  it('is not used in the home folder of another user', () => {
    expect(openCacheFolder('a', { uid: uid + 1, home: home.path })).toBeNull();
    expect(readdirSync(home.path)).toEqual([]);
  });

  it.each(['.', '.cache', '.cache/hatchway', '.cache/hatchway/a'])('is not used if others can write to %s', (path) => {
    open();
    chmodSync(inHome(path), 0o770);
    expect(open()).toBeNull();
  });

  it.each(['.cache', '.cache/hatchway', '.cache/hatchway/a'])('is not used if %s is a link', (path) => {
    mkdirSync(inHome('elsewhere'), { mode: 0o700 });
    mkdirSync(inHome(path, '..'), { recursive: true, mode: 0o700 });
    symlinkSync(inHome('elsewhere'), inHome(path));
    expect(open()).toBeNull();
  });

  it('is not used without a home folder', () => {
    expect(openCacheFolder('a', { uid, home: inHome('missing') })).toBeNull();
  });

  it('keeps the code of the last four programs', () => {
    for (const [index, name] of ['a', 'b', 'c', 'd', 'e', 'f'].entries()) {
      open(name);
      utimesSync(inHome('.cache/hatchway', name), index, index);
    }
    expect(readdirSync(inHome('.cache/hatchway'))).toEqual(['c', 'd', 'e', 'f']);
  });
});
