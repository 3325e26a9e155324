// Compiled code of bundles: kept and used only where no other user can write, and never a reason to fail.
import {
  chmodSync,
  chownSync,
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
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadForUser, openCacheFolder, readCode, writeCode } from './code-cache.ts';

const uid = process.getuid?.() ?? 0;
let home: TemporaryDirectory;
beforeEach(async () => {
  home = await temporaryDirectory();
  chmodSync(home.path, 0o755);
});
afterEach(() => home.close());

const inHome = (...parts: string[]) => join(home.path, ...parts);
const open = (create = true) => openCacheFolder({ uid, home: home.path }, { create });
const PRIVATE = { uid, forbidden: 0o077 };

describe.skipIf(process.platform === 'win32')('the folder for compiled code', () => {
  it('is in the home folder, and only its owner can open it', () => {
    expect(open()).toBe(inHome('.cache/hatchway'));
    expect(statSync(inHome('.cache/hatchway')).mode & 0o777).toBe(0o700);
    expect(open()).toBe(inHome('.cache/hatchway'));
  });

  it('is not created to read code', () => {
    expect(open(false)).toBeNull();
    expect(readdirSync(home.path)).toEqual([]);
    open();
    expect(open(false)).toBe(inHome('.cache/hatchway'));
  });

  it('is not used in the home folder of another user', () => {
    expect(openCacheFolder({ uid: uid + 1, home: home.path }, { create: true })).toBeNull();
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
    expect(openCacheFolder({ uid, home: inHome('missing') }, { create: true })).toBeNull();
    expect(openCacheFolder({ uid, home: '/' }, { create: true })).toBeNull();
  });
});

describe.skipIf(process.platform === 'win32')('a file of compiled code', () => {
  const code = Buffer.from('compiled code');
  const file = () => inHome('code');

  it('is private to the user, and is read as it was written', () => {
    writeCode(file(), code);
    expect(readCode(file(), PRIVATE)).toEqual(code);
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
    expect(readCode(file(), PRIVATE)).toBeUndefined();
  });

  it('is not used if it belongs to another user', () => {
    writeCode(file(), code);
    expect(readCode(file(), { ...PRIVATE, uid: uid + 1 })).toBeUndefined();
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

describe.skipIf(process.platform === 'win32')('code beside the bundle', () => {
  const load = createRequire(import.meta.url);
  const uses = { use: 'tcp', built: 'http' };
  const folder = () => inHome('.cache/hatchway');
  const bundle = () => inHome('dist', 'program.cjs');
  const user = () => ({ uid, home: inHome('user') });
  const kept = () => {
    const path = inHome('user/.cache/hatchway');
    return existsSync(path) ? readdirSync(path) : [];
  };

  /** Runs the program as a user, and keeps its compiled code if it was compiled. */
  const run = (as: Parameters<typeof loadForUser>[0] = user()): void => {
    const { exports, keepCode } = loadForUser(as, bundle(), uses, load);
    expect((exports as { answer(): number }).answer()).toBe(42);
    keepCode();
  };

  /** Makes a bundle, and puts its code beside it, as the build does: a run with an empty home folder keeps the code, and the file moves. */
  const build = (): string => {
    mkdirSync(inHome('user'), { mode: 0o755 });
    mkdirSync(inHome('made'), { mode: 0o755 });
    const made = inHome('made/program.cjs');
    writeFileSync(made, 'exports.answer = () => 42;', { mode: 0o644 });
    loadForUser({ uid, home: home.path }, made, { use: 'http', built: null }, load).keepCode();
    // V8 remembers the scripts that the process has compiled, by text and path. At a new path it reads the code.
    renameSync(inHome('made'), inHome('dist'));
    const [name = ''] = readdirSync(folder());
    const built = inHome('dist', name);
    renameSync(join(folder(), name), built);
    chmodSync(built, 0o644);
    return built;
  };

  it('is used for every command, and no other code is kept', () => {
    build();
    run();
    expect(readdirSync(inHome('user'))).toEqual([]);
  });

  it('is used without a folder of the user', () => {
    const built = build();
    run(null);
    run({ uid, home: inHome('missing') });
    rmSync(built);
    run(null);
    run({ uid, home: inHome('missing') });
    expect(existsSync(inHome('missing'))).toBe(false);
  });

  it.each<[string, (built: string) => void]>([
    ['is missing', (built) => rmSync(built)],
    ['is empty', (built) => truncateSync(built, 0)],
    ['is truncated', (built) => truncateSync(built, 100)],
    ['has a changed byte', (built) => writeFileSync(built, readFileSync(built).fill(7, 60, 61))],
    ['is writable by a group', (built) => chmodSync(built, 0o664)],
    ['is writable by everyone', (built) => chmodSync(built, 0o646)],
    ['has a second name', (built) => linkSync(built, inHome('other'))],
    [
      'is a link',
      (built) => {
        renameSync(built, inHome('other'));
        symlinkSync(inHome('other'), built);
      },
    ],
    [
      'is a folder',
      (built) => {
        rmSync(built);
        mkdirSync(built);
      },
    ],
    ['belongs to another bundle', () => writeFileSync(bundle(), 'exports.answer = () => 6*7;')],
  ])('is not used if it %s, and the user keeps code', (_what, damage) => {
    damage(build());
    run();
    expect(kept()).toHaveLength(1);
  });

  it.runIf(uid === 0)('is not used if it has another owner than the bundle', () => {
    const built = build();
    chownSync(built, 1, 0);
    run();
    expect(kept()).toHaveLength(1);
    chownSync(bundle(), 1, 0);
    rmSync(inHome('user'), { recursive: true });
    mkdirSync(inHome('user'), { mode: 0o755 });
    run();
    expect(kept()).toEqual([]);
  });

  it("makes way for the user's code if V8 rejects it", () => {
    const built = build();
    writeCode(built, Buffer.from('code of a Node.js with the same version and another V8'));
    chmodSync(built, 0o644);
    run();
    const [own = ''] = kept();
    const { ino } = statSync(inHome('user/.cache/hatchway', own));
    run();
    expect(statSync(inHome('user/.cache/hatchway', own)).ino).toBe(ino);
  });
});
