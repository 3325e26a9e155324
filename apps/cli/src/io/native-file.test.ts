import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nativeFile } from './native-file.ts';

const CODE = Buffer.from('native code');

let home: TemporaryDirectory;
let folder: string;
beforeEach(async () => {
  home = await temporaryDirectory();
  folder = join(home.path, '.tunnel', 'native');
});
afterEach(() => home.close());

const write = (bytes = CODE): string => nativeFile(bytes, { folder, name: 'udx' });

describe('a file with native code', () => {
  it('is in a folder of mode 0700, readable by its owner only', () => {
    const file = write();
    expect(readFileSync(file)).toEqual(CODE);
    expect([statSync(folder).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o700, 0o600]);
  });

  it('is written once per version of the code', () => {
    const file = write();
    utimesSync(file, 1, 1);
    expect(write()).toBe(file);
    expect(statSync(file).mtimeMs).toBe(1000);
    expect(write(Buffer.from('newer code'))).not.toBe(file);
    expect(readdirSync(folder)).toHaveLength(2);
  });

  it('is written again if it has other bytes', () => {
    const file = write();
    writeFileSync(file, 'damaged');
    expect(readFileSync(write())).toEqual(CODE);
  });

  it('is not written to a folder that other users can change', () => {
    write();
    chmodSync(folder, 0o770);
    expect(() => write()).toThrow('is not private to this user');
  });

  it('is not written through a link in place of the folder', () => {
    write();
    const other = join(home.path, 'other');
    symlinkSync(folder, other);
    folder = other;
    expect(() => write(Buffer.from('newer code'))).toThrow('is not private to this user');
    expect(existsSync(other)).toBe(true);
  });
});
