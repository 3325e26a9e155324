import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type AtomicWriteOptions,
  readBounded,
  readBoundedSync,
  syncFolder,
  syncFolderSync,
  writeAtomic,
  writeAtomicSync,
} from './atomic-file.ts';

let folder: TemporaryDirectory;
let path: string;
beforeEach(async () => {
  folder = await temporaryDirectory();
  path = join(folder.path, 'state.json');
});
afterEach(() => folder.close());

const isRoot = process.getuid?.() === 0;
const names = (): string[] => readdirSync(folder.path);

type Write = (path: string, content: string | Uint8Array, options?: AtomicWriteOptions) => Promise<void>;
const WRITES: readonly (readonly [string, Write])[] = [
  ['writeAtomic', writeAtomic],
  ['writeAtomicSync', async (...given) => writeAtomicSync(...given)],
];

describe.each(WRITES)('%s', (_name, write) => {
  it.each([{}, { soleWriter: true }, { flush: true }])(
    'replaces the whole file, readable by its owner only: %j',
    async (options) => {
      await write(path, 'first', options);
      await write(path, Buffer.from('second'), options);
      expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777, names()]).toEqual([
        'second',
        0o600,
        ['state.json'],
      ]);
    },
  );

  it('applies the requested mode, whatever the mode of the old file', async () => {
    writeFileSync(path, 'old');
    chmodSync(path, 0o666);
    await write(path, 'new', { mode: 0o644 });
    expect(statSync(path).mode & 0o777).toBe(0o644);
  });

  it('replaces a symlink instead of writing to its target', async () => {
    const target = join(folder.path, 'target');
    writeFileSync(target, 'untouched');
    symlinkSync(target, path);
    await write(path, 'new');
    expect([readFileSync(target, 'utf8'), lstatSync(path).isSymbolicLink(), readFileSync(path, 'utf8')]).toEqual([
      'untouched',
      false,
      'new',
    ]);
  });

  it('does not write through a symlink at the path of the temporary file', async () => {
    const target = join(folder.path, 'target');
    writeFileSync(target, 'untouched');
    symlinkSync(target, `${path}.new`);
    await write(path, 'new', { soleWriter: true });
    expect([readFileSync(target, 'utf8'), readFileSync(path, 'utf8'), existsSync(`${path}.new`)]).toEqual([
      'untouched',
      'new',
      false,
    ]);
  });

  it('replaces the temporary file of a killed writer', async () => {
    writeFileSync(`${path}.new`, 'half of');
    await write(path, 'new', { soleWriter: true });
    expect([readFileSync(path, 'utf8'), names()]).toEqual(['new', ['state.json']]);
  });

  it.each([{}, { soleWriter: true }])('leaves no temporary file behind after a failure: %j', async (options) => {
    mkdirSync(join(path, 'full'), { recursive: true });
    await expect(write(path, 'new', options)).rejects.toMatchObject({
      code: expect.stringMatching(/EISDIR|ENOTEMPTY/),
    });
    expect(names()).toEqual(['state.json']);
    await expect(write(join(folder.path, 'none', 'state.json'), 'new', options)).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });

  it.skipIf(isRoot)('keeps the old content when the folder is read-only', async () => {
    await write(path, 'old');
    chmodSync(folder.path, 0o500);
    await expect(write(path, 'new')).rejects.toMatchObject({ code: 'EACCES' });
    chmodSync(folder.path, 0o700);
    expect([readFileSync(path, 'utf8'), names()]).toEqual(['old', ['state.json']]);
  });
});

describe('a synchronous atomic write', () => {
  it('with `exclusive` never replaces a file or a symbolic link, and leaves no temporary file', () => {
    writeAtomicSync(path, 'first', { exclusive: true });
    expect(() => writeAtomicSync(path, 'second', { exclusive: true })).toThrow('EEXIST');
    symlinkSync('nowhere', join(folder.path, 'link'));
    expect(() => writeAtomicSync(join(folder.path, 'link'), 'second', { exclusive: true })).toThrow('EEXIST');
    expect([readFileSync(path, 'utf8'), names().sort()]).toEqual(['first', ['link', 'state.json']]);
  });

  it('with an owner sets exactly the requested mode, whatever the umask', () => {
    const before = process.umask(0o077);
    const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    try {
      writeAtomicSync(path, 'new', { mode: 0o640, owner });
    } finally {
      process.umask(before);
    }
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });
});

describe('an atomic write', () => {
  it('accepts its content in pieces', async () => {
    await writeAtomic(path, ['{"a":', '"ü"}', '\n']);
    expect(readFileSync(path, 'utf8')).toBe('{"a":"ü"}\n');
  });

  it('keeps the old content when the source of the pieces throws', async () => {
    await writeAtomic(path, 'old');
    const pieces = function* (): Generator<string> {
      yield 'half';
      throw new Error('no more');
    };
    await expect(writeAtomic(path, pieces())).rejects.toThrow('no more');
    expect([readFileSync(path, 'utf8'), names()]).toEqual(['old', ['state.json']]);
  });

  it('by many writers at once leaves the whole content of one writer and no other file', async () => {
    const contents = Array.from({ length: 30 }, (_, index) => `${index},`.repeat(20_000));
    await Promise.all(contents.map((content) => writeAtomic(path, content)));
    expect(contents).toContain(readFileSync(path, 'utf8'));
    expect(names()).toEqual(['state.json']);
  });
});

describe('a bounded read', () => {
  const READS = [
    ['readBounded', readBounded],
    ['readBoundedSync', async (...given: [string, number]) => readBoundedSync(...given)],
  ] as const;

  it.each(READS)(
    '%s returns the text, or null for a missing file, and rejects long or special files',
    async (_name, read) => {
      expect(await read(path, 10)).toBeNull();
      writeFileSync(path, '1234567890');
      expect(await read(path, 10)).toBe('1234567890');
      await expect(read(path, 9)).rejects.toThrow('it has 10 bytes');
      await expect(read(folder.path, 1 << 20)).rejects.toThrow('not a regular file');
      await expect(read('/dev/zero', 10)).rejects.toThrow('not a regular file');
    },
  );
});

it('an existing folder can be flushed, and a missing folder is an error', async () => {
  await syncFolder(folder.path);
  syncFolderSync(folder.path);
  await expect(syncFolder(path)).rejects.toMatchObject({ code: 'ENOENT' });
  expect(() => syncFolderSync(path)).toThrow('ENOENT');
});
