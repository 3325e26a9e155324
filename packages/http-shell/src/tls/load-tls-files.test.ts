import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryDirectory } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { loadTlsFiles } from './certificate-files.ts';

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../testkit/fixtures/tls/${name}`, import.meta.url));
const cert_path = fixture('cert.pem');
const key_path = fixture('key.pem');

it('a certificate pair is loaded, or null if none is configured', async () => {
  expect(await loadTlsFiles({ cert_path, key_path })).not.toBeNull();
  expect(await loadTlsFiles({ cert_path: '', key_path: '' })).toBeNull();
});

it('a missing or invalid certificate file is named in the error', async () => {
  const directory = await temporaryDirectory();
  const other = join(directory.path, 'other.pem');
  await writeFile(other, 'not a key');
  const problem = (cert: string, key: string): Promise<string> =>
    loadTlsFiles({ cert_path: cert, key_path: key }).then(
      () => 'loaded',
      (error: Error) => error.message,
    );
  expect(await problem(join(directory.path, 'none.pem'), key_path)).toContain('none.pem: ENOENT');
  expect(await problem(cert_path, '')).toContain('`key_path`: empty');
  expect(await problem(cert_path, other)).toContain('other.pem');
  await directory.close();
});
