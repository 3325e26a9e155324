import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connect, createServer } from 'node:tls';
import { promisify } from 'node:util';
import { systemClock } from '@tunnel/runtime';
import { FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LocalAuthority } from './local-authority.ts';

const run = promisify(execFile);

let folder: TemporaryDirectory;

beforeEach(async () => {
  folder = await temporaryDirectory();
});

afterEach(() => folder.close());

const open = (clock = systemClock): Promise<LocalAuthority> =>
  LocalAuthority.open(join(folder.path, 'local-ca'), clock);

/** Returns the result of a TLS handshake by a client that trusts the authority: `trusted`, or the error code. */
const handshake = async (authority: LocalAuthority, issuedFor: string, asked: string): Promise<string> => {
  const server = createServer(await authority.issue(issuedFor), (socket) => socket.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const servername = /^[\d.:]+$/.test(asked) ? {} : { servername: asked };
    const socket = connect({ host: '127.0.0.1', port, ca: authority.certificate, ...servername });
    return await new Promise<string>((resolve) => {
      socket.once('secureConnect', () => resolve('trusted'));
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    }).finally(() => socket.destroy());
  } finally {
    server.close();
  }
};

it('the local authority is trusted for localhost, its addresses and every name below it', async () => {
  const authority = await open();
  expect(await handshake(authority, 'localhost', 'localhost')).toBe('trusted');
  expect(await handshake(authority, 'localhost', '127.0.0.1')).toBe('trusted');
  expect(await handshake(authority, 'shop.localhost', 'shop.localhost')).toBe('trusted');
  expect(await handshake(authority, 'a.shop.localhost', 'a.shop.localhost')).toBe('trusted');
  const long = `${'a'.repeat(63)}.${'b'.repeat(63)}.localhost`;
  expect(await handshake(authority, long, long)).toBe('trusted');
});

it('the local authority is not trusted for any other name, even with its key', async () => {
  const authority = await open();
  expect(await handshake(authority, 'example.com', 'example.com')).toBe('UNSPECIFIED');
  expect(await handshake(authority, 'notlocalhost', 'notlocalhost')).toBe('UNSPECIFIED');
  expect(await handshake(authority, 'shop.localhost', 'localhost')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
});

it('the local authority is created once, and its key file is readable only by its owner', async () => {
  const first = await open();
  const again = await open();
  expect(again.certificate).toBe(first.certificate);
  expect(first.file).toBe(join(folder.path, 'local-ca', 'ca.pem'));
  expect((await stat(join(folder.path, 'local-ca', 'ca-key.pem'))).mode & 0o777).toBe(0o600);
  const { ca, subject, validTo } = new X509Certificate(await readFile(first.file));
  expect([ca, /^CN=Tunnel local authority [0-9a-f]{6}$/.test(subject)]).toEqual([true, true]);
  expect(Date.parse(validTo)).toBeGreaterThan(Date.now() + 9 * 365 * 86_400_000);
});

it.each([
  { title: 'no key', spoil: (path: string) => rm(join(path, 'ca-key.pem')), reason: 'ca-key.pem' },
  { title: 'an invalid certificate', spoil: (path: string) => writeFile(join(path, 'ca.pem'), 'x'), reason: '' },
])('a local authority with $title is refused, and the error names the file', async ({ spoil, reason }) => {
  await open();
  await spoil(join(folder.path, 'local-ca'));
  await expect(open()).rejects.toMatchObject({
    code: 'LOCAL_CA_UNUSABLE',
    message: expect.stringContaining(reason) as string,
  });
});

it('an expired local authority is refused', async () => {
  await open(new FakeClock(Date.UTC(2000, 0, 1)));
  await expect(open()).rejects.toThrow('the certificate has expired; delete the folder to create a new authority');
});

it('OpenSSL shows the name constraints of the local authority as intended', async (context) => {
  const { file } = await open();
  const text = await run('openssl', ['x509', '-in', file, '-noout', '-text']).catch(() => null);
  if (text === null) return context.skip('there is no openssl');
  expect(text.stdout.replace(/\s+/g, ' ')).toMatch(
    /Name Constraints: critical Permitted: DNS:localhost IP:127\.0\.0\.0\/255\.0\.0\.0 IP:0:0:0:0:0:0:0:1\/FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF/,
  );
});
