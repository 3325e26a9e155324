import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { takeLock } from '../files/file-lock.ts';
import { openLogFile } from './log-file.ts';

let folder: TemporaryDirectory;
beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(() => folder.close());

/** Waits for the end of the turn: lines queued behind an earlier line are written by then. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

const open = (path: string, { clock = new FakeClock(), fileBytes = 1000 } = {}) => {
  const problems: string[] = [];
  const file = openLogFile({
    path,
    clock,
    fileBytes,
    onProblem: (reason) => problems.push(reason),
    droppedLine: (count) => `dropped ${count}\n`,
  });
  return { file, problems, clock };
};

const linesOf = (path: string): string[] =>
  [4, 3, 2, 1, 0]
    .map((number) => (number === 0 ? path : `${path}.${number}`))
    .filter((name) => existsSync(name))
    .flatMap((name) => readFileSync(name, 'utf8').split('\n').slice(0, -1));

describe('a log file', () => {
  it('keeps every line in order across rotations', async () => {
    const path = join(folder.path, 'tunnel.log');
    const { file, problems } = open(path);
    const lines = Array.from({ length: 60 }, (_, index) => `line ${index} ${'x'.repeat(50)}`);
    for (const [index, line] of lines.entries()) {
      file.write(`${line}\n`);
      if (index % 7 === 0) await settled();
    }
    file.close();
    expect(linesOf(path)).toEqual(lines);
    for (const name of readdirSync(folder.path)) {
      const { size, mode } = statSync(join(folder.path, name));
      expect(size).toBeLessThanOrEqual(1000);
      expect(mode & 0o777).toBe(0o600);
    }
    expect(problems).toEqual([]);
  });

  it('keeps five files with the newest lines', async () => {
    const path = join(folder.path, 'tunnel.log');
    const { file } = open(path, { fileBytes: 100 });
    for (let index = 0; index < 100; index += 1) {
      file.write(`${String(index).padStart(49, '0')}\n`);
      await settled();
    }
    file.close();
    expect(readdirSync(folder.path).sort()).toEqual(
      ['tunnel.log', 'tunnel.log.1', 'tunnel.log.2', 'tunnel.log.3', 'tunnel.log.4'].sort(),
    );
    expect(linesOf(path).map(Number)).toEqual(Array.from({ length: 10 }, (_, index) => 90 + index));
  });

  it('continues after the lines of an earlier run', () => {
    const path = join(folder.path, 'tunnel.log');
    writeFileSync(path, 'before\n');
    const { file } = open(path);
    file.write('after\n');
    file.close();
    expect(readFileSync(path, 'utf8')).toBe('before\nafter\n');
  });

  it('continues in a new file after a move or removal, even with a second writer', async () => {
    const path = join(folder.path, 'tunnel.log');
    const a = open(path);
    const b = open(path);
    a.file.write('one\n');
    await settled();
    renameSync(path, join(folder.path, 'moved'));
    a.file.write('two\n');
    b.file.write('three\n');
    await settled();
    const lines = Array.from({ length: 40 }, (_, index) => `line ${index} ${'x'.repeat(50)}`);
    for (const [index, line] of lines.entries()) {
      (index % 2 === 0 ? a : b).file.write(`${line}\n`);
      await settled();
    }
    for (const { file } of [a, b]) file.close();
    expect(readFileSync(join(folder.path, 'moved'), 'utf8')).toBe('one\n');
    expect(linesOf(path)).toEqual(['two', 'three', ...lines]);
  });

  it('is rotated by one writer at a time, while other writers continue', async () => {
    const path = join(folder.path, 'tunnel.log');
    const { file, problems } = open(path, { fileBytes: 100 });
    const other = takeLock(`${path}.lock`);
    for (let index = 0; index < 5; index += 1) {
      file.write(`${'x'.repeat(49)}\n`);
      await settled();
    }
    expect(readdirSync(folder.path).sort()).toEqual(['tunnel.log', 'tunnel.log.lock']);
    other?.release();
    file.write('next\n');
    file.close();
    expect(readdirSync(folder.path).sort()).toEqual(['tunnel.log', 'tunnel.log.1']);
    expect(linesOf(path)).toHaveLength(6);
    expect(problems).toEqual([]);
  });

  it('follows a symlink, and rotated files lie next to the target', async () => {
    const real = join(folder.path, 'big', 'real.log');
    mkdirSync(join(folder.path, 'big'));
    const path = join(folder.path, 'tunnel.log');
    symlinkSync(real, path);
    const { file, problems } = open(path, { fileBytes: 100 });
    for (let index = 0; index < 5; index += 1) {
      file.write(`${String(index).padStart(49, '0')}\n`);
      await settled();
    }
    file.close();
    expect(problems).toEqual([]);
    expect(readdirSync(folder.path).sort()).toEqual(['big', 'tunnel.log']);
    expect(linesOf(real).map(Number)).toEqual([0, 1, 2, 3, 4]);
  });

  it.each([
    ['half a line, which goes', '{"a":1}\n{"event":"requ', '{"a":1}\n'],
    ['half a line alone', '{"event":"requ', ''],
    ['a line without its end, which stays', '{"a":1}\n{"b":2}', '{"a":1}\n{"b":2}\n'],
    ['text of somebody else, which stays', 'a key', 'a key\n'],
  ])('continues on a new line after %s', (_, before, kept) => {
    const path = join(folder.path, 'tunnel.log');
    writeFileSync(path, before);
    const { file } = open(path);
    file.write('{"c":3}\n');
    file.close();
    expect(readFileSync(path, 'utf8')).toBe(`${kept}{"c":3}\n`);
  });

  it('reports a failure once, and later writes how many lines are missing', async () => {
    const path = join(folder.path, 'later', 'tunnel.log');
    const { file, problems, clock } = open(path);
    expect(problems).toEqual(['no such folder']);
    for (let index = 0; index < 10; index += 1) {
      file.write('lost\n');
      await settled();
      await clock.advance(2000);
    }
    mkdirSync(join(folder.path, 'later'));
    file.write('first\n');
    await settled();
    file.write('second\n');
    await settled();
    file.close();
    expect(problems).toEqual(['no such folder']);
    expect(readFileSync(path, 'utf8')).toBe('first\ndropped 10\nsecond\n');
  });

  it.each([
    ['a folder', (path: string) => mkdirSync(path), 'the path is a folder'],
    ['a pipe', (path: string) => spawnSync('mkfifo', [path]), 'not a regular file'],
  ])('refuses %s at once', (_, make, reason) => {
    const path = join(folder.path, 'tunnel.log');
    make(path);
    const { file, problems } = open(path);
    file.write('lost\n');
    file.close();
    expect(problems).toEqual([reason]);
  });

  it('loses no line of a burst within one turn', () => {
    const path = join(folder.path, 'tunnel.log');
    const { file } = open(path, { fileBytes: 10_000_000 });
    for (let index = 0; index < 5000; index += 1) file.write(`${index} ${'y'.repeat(100)}\n`);
    file.close();
    expect(linesOf(path)).toHaveLength(5000);
  });
});
