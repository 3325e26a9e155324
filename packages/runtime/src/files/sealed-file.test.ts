import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Secret } from '../secret.ts';
import { SealedFiles } from './sealed-file.ts';

let folder: TemporaryDirectory;
let path: string;
beforeEach(async () => {
  folder = await temporaryDirectory();
  path = join(folder.path, 'keys.jwe');
});
afterEach(() => folder.close());

const filesOf = (secret = 'credential of the edge', purpose = 'tunnel copies of keys'): SealedFiles =>
  new SealedFiles(new Secret(secret), purpose);

/** A sealed file written by the previous version, with another library. */
const WRITTEN_BEFORE =
  'eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..eAXRapwI7tHjVZH9.tpGhtyi5yQOoA_LBmus52CnZCy6DOzrBak1tUPzo6h-JUwjyvkn7ZlVPLokOH5OVXa5dQYl9-EYa0Q-L3JRc8NKfYbvvThJeqWpbWjCdxiR5M6UAQAeeSxl8UN5s3-31RnIm6w.O4GOZzZZXSvH6Hn6_xW63Q';

it('a sealed file opens only with the secret and purpose of its writer, and reveals nothing otherwise', async () => {
  const value = [{ name: 'bücher', list: [1, null, true] }];
  await filesOf().write(path, value);
  await filesOf().write(path, value);
  expect(filesOf().read(path, 1000)).toEqual(value);
  expect(readFileSync(path, 'utf8')).not.toContain('bücher');
  expect([statSync(path).mode & 0o777, readdirSync(folder.path)]).toEqual([0o600, ['keys.jwe']]);
  expect(() => filesOf('another').read(path, 1000)).toThrow();
  expect(() => filesOf(undefined, 'tunnel copies of certificates').read(path, 1000)).toThrow();
});

it('a sealed file of the previous version opens, and the format is unchanged', async () => {
  writeFileSync(path, `${WRITTEN_BEFORE}\n`);
  const value = [{ token_hash: 'ab'.repeat(32), note: 'bücher' }];
  expect(filesOf().read(path, 1000)).toEqual(value);
  await filesOf().write(path, value);
  const lengths = (text: string): number[] => text.split('.').map((part) => part.length);
  const written = readFileSync(path, 'utf8');
  expect(lengths(written)).toEqual(lengths(WRITTEN_BEFORE));
  expect(written.split('.')[0]).toBe(WRITTEN_BEFORE.split('.')[0]);
});

it('two writes of the same value share nothing but the header', async () => {
  await filesOf().write(path, 'same');
  const first = readFileSync(path, 'utf8').split('.').slice(2);
  await filesOf().write(path, 'same');
  const second = readFileSync(path, 'utf8').split('.').slice(2);
  expect(first.filter((part) => second.includes(part))).toEqual([]);
});

it('a sealed file that was altered, truncated or sealed in another way is rejected', () => {
  for (let at = 0; at < WRITTEN_BEFORE.length; at += 7) {
    const changed = WRITTEN_BEFORE[at] === 'A' ? 'Z' : 'A';
    writeFileSync(path, WRITTEN_BEFORE.slice(0, at) + changed + WRITTEN_BEFORE.slice(at + 1));
    expect(() => filesOf().read(path, 1000)).toThrow();
    writeFileSync(path, WRITTEN_BEFORE.slice(0, at));
    expect(() => filesOf().read(path, 1000)).toThrow();
  }
  writeFileSync(path, `${WRITTEN_BEFORE}.more`);
  expect(() => filesOf().read(path, 1000)).toThrow('the file is encrypted in an unknown format');
});

it('a missing sealed file reads as undefined; a file that is too large or special is rejected', () => {
  expect(filesOf().read(path, 1000)).toBeUndefined();
  writeFileSync(path, WRITTEN_BEFORE);
  expect(() => filesOf().read(path, 10)).toThrow('it has');
  expect(() => filesOf().read(folder.path, 1000)).toThrow('not a regular file');
});
