import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { decodeProtectedHeader } from 'jose';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { SealedKeys } from './sealed-keys.ts';

let folder: TemporaryDirectory;

beforeEach(async () => {
  folder = await temporaryDirectory();
});

afterEach(() => folder.close());

const file = (name = 'certificate-key'): string => join(folder.path, name);
const open = (name?: string): SealedKeys => SealedKeys.open({ file: file(name), isGiven: false });

it('the key file is created once with 32 bytes and mode 600, and opens the keys that it sealed', async () => {
  const sealed = await open().seal('a private key');
  const text = readFileSync(file(), 'utf8');
  expect(Buffer.from(text.trim(), 'base64url')).toHaveLength(32);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect(await open().open(sealed)).toBe('a private key');
  expect(readFileSync(file(), 'utf8')).toBe(text);
  expect(decodeProtectedHeader(sealed)).toMatchObject({
    alg: 'dir',
    enc: 'A256GCM',
    kid: expect.any(String) as string,
  });
});

it('another key file, or a changed sealed text, is refused with the name of the key file', async () => {
  const sealed = await open().seal('a private key');
  await expect(open('other').open(sealed)).rejects.toThrow(file('other'));
  await expect(open().open(`${sealed.slice(0, -4)}AAAA`)).rejects.toMatchObject({ code: 'CERTIFICATE_KEY_FILE' });
});

it('a configured key file is never created, and an invalid file is refused', () => {
  expect(() => SealedKeys.open({ file: file(), isGiven: true })).toThrow('the file does not exist');
  writeFileSync(file(), 'short\n');
  expect(() => open()).toThrow('the file does not contain 32 bytes');
});
