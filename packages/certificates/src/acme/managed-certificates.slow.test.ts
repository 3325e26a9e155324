// Certificates as configured, with an authority that really validates and a DNS server with delegation.
import { chmod, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger } from '@tunnel/runtime';
import {
  AcmeServer,
  type DnsServer,
  eventually,
  FakeClock,
  FastClock,
  startDnsServer,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CertificateRecord } from './keeper/certificate-store.ts';
import { type ChallengeDoors, openChallengeDoors } from './keeper/challenge-doors.fixture.ts';
import { FileCertificateStore } from './keeper/file-certificate-store.ts';
import { ManagedCertificates, type ManagedCertificatesOptions } from './managed-certificates.ts';

const DOMAIN = 'tunnels.test';
const ZONE = `_acme-challenge.${DOMAIN}`;

let authority: AcmeServer;
let doors: ChallengeDoors;
let dns: DnsServer;
let folder: TemporaryDirectory;
let store: FileCertificateStore;
let lines: string[];
let closers: (() => Promise<unknown>)[];

beforeEach(async () => {
  [lines, closers] = [[], []];
  folder = await temporaryDirectory();
  doors = await openChallengeDoors();
  dns = await startDnsServer();
  authority = await AcmeServer.start({ addressOf: () => ({ host: '127.0.0.1', ...doors }), txt: textsOf });
  store = new FileCertificateStore(join(folder.path, 'certificates'), authority.directory);
  doors.store = store;
  await writeFile(join(folder.path, 'ca.pem'), authority.ca);
});

afterEach(async () => {
  for (const close of closers.reverse()) await close();
  await authority.close();
  await dns.close();
  await doors.close();
  await folder.close();
});

/** Returns TXT records as the authority resolves them: through the resolver of the test. */
const textsOf = async (name: string): Promise<string[]> => {
  const { Resolver } = await import('node:dns/promises');
  const resolver = new Resolver();
  resolver.setServers([dns.address]);
  return (await resolver.resolveTxt(name).catch(() => [])).map((strings) => strings.join(''));
};

const output = (): Writable =>
  new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });

const manage = (
  acme: Record<string, unknown>,
  given: Partial<ManagedCertificatesOptions> & { readonly dnsPort?: number } = {},
): ManagedCertificates => {
  const { dnsPort = 0, ...options } = given;
  const config = loadServerConfig({
    env: {},
    overrides: {
      server: { domain: DOMAIN },
      acme: { enabled: true, directory: authority.directory, ca_file: join(folder.path, 'ca.pem'), ...acme },
      dns: { host: '127.0.0.1', port: dnsPort, resolvers: [dns.address] },
    },
  });
  const managed = new ManagedCertificates({
    acme: config.acme,
    dns: config.dns,
    domain: DOMAIN,
    host: '127.0.0.1',
    dataDir: folder.path,
    store,
    challengeTargetOf: async (name) => (name === 'shop.example' ? `token7.${ZONE}` : null),
    isPassedThrough: () => false,
    // Orders are polled every half second or less often, so a fast clock shortens the tests.
    clock: new FastClock(20),
    random: Math.random,
    logger: createLogger({ format: 'json', stream: output() }),
    listener: { onIssued: () => {}, onOrder: () => {}, onEnding: () => {} },
    ...options,
  });
  closers.push(() => managed.stop());
  return managed;
};

const delegate = ({ responder }: ManagedCertificates): void => {
  dns.delegate(ZONE, { host: '127.0.0.1', port: responder?.port ?? 0 });
};

const issued = (id: string): Promise<CertificateRecord> =>
  eventually(
    async () => {
      const record = await store.get(id);
      expect([record?.life.lastError, record?.certificate != null]).toEqual([null, true]);
      return record as CertificateRecord;
    },
    { timeoutMs: 45_000 },
  );

/** Returns the number of challenges that the authority was asked to validate. */
const told = (): number => authority.count('challenge');

it.each(['http-01', 'tls-alpn-01'] as const)('a %s challenge is answered from the store', async (challenge) => {
  const managed = manage({ challenges: [challenge] });
  const { id } = await store.want([DOMAIN]);
  await managed.start();
  expect((await issued(id)).names).toEqual([DOMAIN]);
  expect([managed.canWildcard, managed.responder]).toEqual([false, null]);
});

it('a host with TLS passthrough is validated over HTTP at once', async () => {
  const managed = manage({}, { isPassedThrough: async (host) => host === 'shop.example' });
  await doors.closeTls();
  const { id } = await store.want(['shop.example']);
  await managed.start();
  await issued(id);
  expect([authority.orders.length, told()]).toEqual([1, 1]);
});

describe('the built-in DNS responder', () => {
  it.each([
    { title: 'the domain', name: `*.${DOMAIN}`, cname: null },
    { title: 'a name below it', name: `*.shop.${DOMAIN}`, cname: `shop.${ZONE}` },
    { title: 'a custom domain', name: '*.shop.example', cname: `token7.${ZONE}` },
  ])('gets the wildcard certificate of $title', async ({ name, cname }) => {
    const managed = manage({ dns: 'builtin' });
    if (cname !== null) dns.set(`_acme-challenge.${name.slice(2)}`, 'CNAME', cname);
    const { id } = await store.want([name]);
    await managed.start();
    expect(managed.canWildcard).toBe(true);
    delegate(managed);
    expect((await issued(id)).names).toEqual([name]);
    // The challenge record has been removed from the zone.
    expect(await textsOf(cname ?? ZONE)).toEqual([]);
  });

  it.each([
    { title: 'the NS record of the zone', name: `*.${DOMAIN}`, delegated: false, record: `${ZONE} NS ${DOMAIN}` },
    {
      title: 'the CNAME of a custom domain',
      name: '*.shop.example',
      delegated: true,
      record: `_acme-challenge.shop.example CNAME token7.${ZONE}`,
    },
  ])('without $title uses up no validation, and the error names the record', async ({ name, delegated, record }) => {
    const clock = new FakeClock(Date.now());
    const managed = manage({ dns: 'builtin' }, { clock });
    const { id } = await store.want([name]);
    await managed.start();
    if (delegated) delegate(managed);
    const failed = await eventually(
      async () => {
        await clock.advance(250);
        const found = await store.get(id);
        expect(found?.life.failures).toBe(1);
        return found;
      },
      { timeoutMs: 45_000, intervalMs: 1 },
    );
    expect(failed?.life.lastError).toContain(`the DNS record ${record} was not visible within 120 s`);
    expect(told()).toBe(0);
  });

  it('does not validate a custom domain that no account has', async () => {
    const managed = manage({ dns: 'builtin' });
    const { id } = await store.want(['*.others.example']);
    await managed.start();
    await eventually(async () => expect((await store.get(id))?.life.lastError).toContain('is outside the'));
    expect(told()).toBe(0);
  });

  it('logs a warning and orders no wildcards if its port cannot be opened; other names still get certificates', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    closers.push(() => new Promise((resolve) => other.close(resolve)));
    const managed = manage({ dns: 'builtin' }, { dnsPort: (other.address() as AddressInfo).port });
    const wildcard = await store.want([`*.${DOMAIN}`]);
    const { id } = await store.want([DOMAIN]);
    await managed.start();
    await issued(id);
    expect([managed.canWildcard, managed.responder]).toEqual([false, null]);
    expect(lines.filter((line) => line.includes('no wildcard certificate is ordered'))).toHaveLength(1);
    // The order is left to other keepers of the same store, which may be able to validate wildcards.
    expect((await store.get(wildcard.id))?.life).toMatchObject({ failures: 0, order: null });
  });
});

it('the dns_exec program sets and clears the challenge record', async () => {
  const api = createServer((request, response) => {
    const [, action, name = '', value = ''] = (request.url ?? '').split('/');
    if (action === 'set') dns.set(name, 'TXT', value);
    else dns.remove(name, 'TXT');
    response.end();
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  closers.push(() => new Promise((resolve) => api.close(resolve)));
  const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  const program = join(folder.path, 'hook');
  const text = `fetch(['${url}', ...process.argv.slice(2)].join('/'), { headers: { connection: 'close' } });`;
  await writeFile(program, `#!${process.execPath}\n${text}\n`);
  await chmod(program, 0o755);
  const managed = manage({ dns: 'exec', dns_exec: program });
  const { id } = await store.want([`*.shop.${DOMAIN}`]);
  await managed.start();
  await issued(id);
  expect(managed.canWildcard).toBe(true);
  await eventually(async () => expect(await textsOf(`_acme-challenge.shop.${DOMAIN}`)).toEqual([]));
});

it('an unusable key file is reported before anything is ordered', async () => {
  await writeFile(join(folder.path, 'short-key'), 'abc', { mode: 0o600 });
  expect(() => manage({ storage_key_file: join(folder.path, 'short-key') })).toThrow('short-key cannot be used');
  expect(() => manage({ storage_key_file: join(folder.path, 'no-key') })).toThrow('the file does not exist');
  expect(() => manage({ ca_file: join(folder.path, 'no.pem') })).toThrow('no.pem');
});
