import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readBounded } from './bounded-file.ts';
import { readSecretText } from './entry-secret.ts';
import { readConfigText } from './file-layers.ts';

let folder: TemporaryDirectory;

beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(() => folder.close());

const written = (bytes: number): string => {
  const file = join(folder.path, 'file');
  writeFileSync(file, 'x'.repeat(bytes));
  return file;
};

it('a file is read up to its size limit, and refused above it', () => {
  expect(readBounded(written(0), 10)).toHaveLength(0);
  expect(readBounded(written(10), 10)).toHaveLength(10);
  expect(readBounded(written(200_000), 200_000)).toHaveLength(200_000);
  expect(() => readBounded(written(11), 10)).toThrow('it is larger than 10 bytes');
  expect(() => readBounded(folder.path, 1e6)).toThrow('EISDIR');
  expect(() => readBounded(join(folder.path, 'nowhere'), 10)).toThrow('ENOENT');
});

it('an endless device is refused, and a pipe without a writer does not block', () => {
  expect(() => readBounded('/dev/zero', 100_000)).toThrow('it is larger than 100000 bytes');
  const pipe = join(folder.path, 'pipe');
  execFileSync('mkfifo', [pipe]);
  expect(() => readConfigText(pipe)).toThrow('it is a pipe');
  expect(readSecretText(pipe)).toEqual({ reason: 'it is a pipe' });
  expect(readSecretText('/dev/zero')).toEqual({ reason: 'it is larger than 65536 bytes' });
});
