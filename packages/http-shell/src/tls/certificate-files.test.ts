// A certificate that changes on disk, in the ways that people and their tools change it.
import { mkdir, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLogger } from '@tunnel/runtime';
import {
  FakeClock,
  renewedCertificate,
  type TemporaryDirectory,
  temporaryDirectory,
  testCertificate,
} from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CertificateFiles, type TlsFiles } from './certificate-files.ts';

let directory: TemporaryDirectory;
let renewed: TlsFiles[];
let lines: string[];
let certificate: CertificateFiles;

const at = (name: string): string => join(directory.path, name);
const write = async (folder: string, { cert, key }: { cert: string; key: string }): Promise<void> => {
  await mkdir(at(folder), { recursive: true });
  await writeFile(at(`${folder}/cert.pem`), cert);
  await writeFile(at(`${folder}/key.pem`), key);
};

const open = async (cert_path: string, key_path: string): Promise<void> => {
  // The lines of this test, not of a later test: a file can still be read, and logged, after the test has ended.
  const said = lines;
  const keep = (fields: object, message: string): void => {
    said.push(`${message} ${JSON.stringify(fields)}`);
  };
  certificate = new CertificateFiles({
    lookEveryMs: 2000,
    paths: { cert_path, key_path },
    clock: new FakeClock(),
    logger: { ...createLogger({ level: 'silent', format: 'json' }), warn: keep },
    onRenewed: (files) => renewed.push(files),
  });
  await certificate.start();
};

beforeEach(async () => {
  directory = await temporaryDirectory();
  renewed = [];
  lines = [];
  await write('live', testCertificate());
});
afterEach(async () => {
  certificate.stop();
  await directory.close();
});

it('a certificate is reloaded when both files are overwritten, but not when they are only touched', async () => {
  await open(at('live/cert.pem'), at('live/key.pem'));
  await utimes(at('live/cert.pem'), new Date(), new Date());
  await certificate.look();
  expect(renewed).toHaveLength(0);
  await write('live', renewedCertificate());
  await certificate.look();
  expect(renewed.map(({ cert }) => cert.toString())).toEqual([renewedCertificate().cert]);
  expect(certificate.current?.key.toString()).toBe(renewedCertificate().key);
  await certificate.look();
  expect(renewed).toHaveLength(1);
});

it('a certificate is reloaded when a symbolic link changes, as certbot does it', async () => {
  await write('archive', renewedCertificate());
  await rename(at('live'), at('first'));
  await mkdir(at('live'));
  for (const name of ['cert.pem', 'key.pem']) await symlink(at(`first/${name}`), at(`live/${name}`));
  await open(at('live/cert.pem'), at('live/key.pem'));
  for (const name of ['cert.pem', 'key.pem']) {
    await symlink(at(`archive/${name}`), at(`live/${name}.new`));
    await rename(at(`live/${name}.new`), at(`live/${name}`));
    await certificate.look();
  }
  expect(renewed.map(({ cert }) => cert.toString())).toEqual([renewedCertificate().cert]);
});

it('the old certificate stays while the new pair does not match, with one warning, until it matches', async () => {
  await open(at('live/cert.pem'), at('live/key.pem'));
  await writeFile(at('live/cert.pem'), renewedCertificate().cert);
  await certificate.look();
  // The matching key may not be written yet, so the first mismatch is not logged.
  expect(lines.length).toBe(0);
  for (let look = 0; look < 3; look += 1) await certificate.look();
  expect(lines.length).toBe(1);
  expect(lines.join('')).toMatch(/the previous certificate stays in use/);
  expect(lines.join('')).toContain('live/cert.pem');
  await rm(at('live/key.pem'));
  for (let look = 0; look < 3; look += 1) await certificate.look();
  expect(lines.length).toBe(2);
  expect([renewed.length, certificate.current?.cert.toString()]).toEqual([0, testCertificate().cert]);
  await writeFile(at('live/key.pem'), renewedCertificate().key);
  await certificate.look();
  expect(renewed).toHaveLength(1);
});

it('the certificate is null if no file is configured', async () => {
  await open('', '');
  expect(certificate.current).toBeNull();
});
