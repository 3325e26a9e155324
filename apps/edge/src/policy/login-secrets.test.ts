import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadLoginSecrets } from './login-secrets.ts';

let dir: TemporaryDirectory;

beforeEach(async () => {
  dir = await temporaryDirectory();
});

afterEach(() => dir.close());

const textsOf = (configured: string, dataDir?: string): string[] =>
  loadLoginSecrets(configured, dataDir).map((secret) => secret.reveal());

it('a login secret is generated once, readable only by its owner, and can be rotated in its file', () => {
  const [first = ''] = textsOf('', dir.path);
  expect(first).toMatch(/^[\w-]{43}$/);
  expect(textsOf('', dir.path)).toEqual([first]);
  const file = join(dir.path, 'login-secret');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  // The operator can also rotate the secrets in the generated file.
  writeFileSync(file, `${'n'.repeat(43)}\n${readFileSync(file, 'utf8')}`);
  expect(textsOf('', dir.path)).toEqual(['n'.repeat(43), first]);
});

it('without a data directory, the login secret lasts for one run', () => {
  expect(textsOf('')).not.toEqual(textsOf(''));
});

it('a file holds one login secret per line, the current secret first', () => {
  const file = join(dir.path, 'secrets');
  writeFileSync(file, `${'a'.repeat(32)}\r\n\n  ${'b'.repeat(40)}  \n`);
  expect(textsOf(file, dir.path)).toEqual(['a'.repeat(32), 'b'.repeat(40)]);
});

it.each([
  ['that is not there', null, 'no such file'],
  ['that is empty', '\n\n', 'the file has no secret'],
  ['with a short secret', `${'a'.repeat(32)}\ns3cret\n`, 'secret 2 is shorter than 32 characters'],
  ['that is no text', Buffer.from([0xff, 0xfe]), 'it is not UTF-8 text'],
] as [string, string | Buffer | null, string][])(
  'a file %s is refused without revealing its content',
  (_what, text, reason) => {
    const file = join(dir.path, 'secrets');
    if (text !== null) writeFileSync(file, text);
    expect(() => loadLoginSecrets(file, dir.path)).toThrow(`cannot read ${file}: ${reason}`);
    expect(() => loadLoginSecrets(file, dir.path)).not.toThrow('s3cret');
  },
);
