// The platform's port over TLS: certificates, renewals under traffic, challenges for the platform's host, and unencrypted requests.
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { type ChallengeAnswer, SealedKeys } from '@tunnel/certificates/acme';
import { NEW_CERTIFICATE } from '@tunnel/certificates/life';
import { systemClock } from '@tunnel/runtime';
import {
  eventually,
  renewedCertificate,
  type TemporaryDirectory,
  temporaryDirectory,
  testCertificate,
} from '@tunnel/testkit';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { createLinkFixture, type LinkFixture } from '../../services/edges/link.fixture.ts';
import { addChallengeRoutes } from '../routes/edges/challenge-routes.ts';
import type { RouteContext } from '../shared/platform-env.ts';
import { openGate } from './gate.fixture.ts';
import { HttpServer } from './http-server.ts';
import { createPlatformApp } from './platform-app.ts';
import { PlatformTls } from './platform-tls.ts';

const DIRECTORY = 'https://ca.test/directory';
const HOST = 'platform.localhost';
const NO_FILES = { cert_path: '', key_path: '' } as PlatformTlsFiles;
type PlatformTlsFiles = ConstructorParameters<typeof PlatformTls>[0]['files'];

let fixture: LinkFixture;
let files: TemporaryDirectory;
let keys: SealedKeys;
let challenges: ChallengeAnswer[];
let server: HttpServer;
let tls: PlatformTls;
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  fixture = await createLinkFixture();
  files = await temporaryDirectory();
  keys = SealedKeys.open({ file: join(files.path, 'certificate-key'), isGiven: false });
  await sql`insert into acme_authority (directory) values (${DIRECTORY})`.execute(fixture.db);
});
afterAll(async () => {
  await fixture.close();
  await files.close();
});
beforeEach(async () => {
  challenges = [];
  await sql`delete from certificates`.execute(fixture.db);
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const start = async (paths = NO_FILES): Promise<void> => {
  const { db, logger } = fixture;
  const settings = { trusted_proxies: [], public_url: `https://${HOST}`, host: '127.0.0.1' };
  const store = {
    findChallenge: async (key: { token: string } | { tlsName: string }) =>
      challenges.find(({ token, name }) => ('token' in key ? token === key.token : name === key.tlsName)) ?? null,
  };
  const certificates = () => ({ store, keys });
  const app = createPlatformApp({ logger, settings });
  app.get('/kept', (call) => call.text('fine'));
  const context = { db, clock: systemClock, logger, settings: settings as unknown as RouteContext['settings'] };
  addChallengeRoutes(app, { ...context, version: '0', certificates });
  tls = new PlatformTls({
    publicUrl: settings.public_url,
    files: paths,
    db,
    certificates,
    clock: systemClock,
    logger,
    onRenewed: (options) => server.renew(options),
  });
  server = new HttpServer({ host: '127.0.0.1', port: 0, app, gate: openGate(), tls, clock: systemClock, logger });
  await tls.start();
  await server.start();
  tls.watch();
  cleanups.push(async () => {
    await tls.stop();
    await server.stop();
  });
};

const keep = async (pair: { cert: string; key: string }, names = HOST): Promise<void> => {
  const { serialNumber } = new X509Certificate(pair.cert);
  const stored = {
    chain: pair.cert,
    issuer: 'Test CA',
    serial: serialNumber,
    notBefore: 0,
    notAfter: 4e12,
    renewalId: null,
    key: await keys.seal(pair.key),
  };
  await sql`
    insert into certificates (directory, names, has_wildcard, life, due_at, certificate)
    values (${DIRECTORY}, ${names}, false, ${JSON.stringify(NEW_CERTIFICATE)}::jsonb, now(), ${JSON.stringify(stored)}::jsonb)
    on conflict (directory, names) do update set certificate = excluded.certificate
  `.execute(fixture.db);
};

const shake = async (options: ConnectionOptions = {}): Promise<TLSSocket> => {
  const at = { port: server.address.port, host: '127.0.0.1', servername: HOST, rejectUnauthorized: false };
  const socket = connect({ ...at, ...options });
  cleanups.push(() => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
};

const serialShown = async (options: ConnectionOptions = {}): Promise<string> =>
  (await shake(options)).getPeerCertificate().serialNumber;

const ask = (agent: Agent): Promise<string> =>
  new Promise((resolve, reject) => {
    const at = { port: server.address.port, host: '127.0.0.1', path: '/kept', headers: { host: HOST } };
    request({ ...at, agent, servername: HOST, rejectUnauthorized: false }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () => resolve(`${response.statusCode} ${body}`));
    })
      .on('error', reject)
      .end();
  });

const serialOf = ({ cert }: { cert: string }): string => new X509Certificate(cert).serialNumber;

it("the platform's TLS port refuses handshakes until the first certificate exists, then uses it without a restart", async () => {
  await start();
  await expect(shake()).rejects.toThrow();
  await keep(testCertificate());
  await eventually(async () => expect(await serialShown()).toBe(serialOf(testCertificate())));
});

it("the platform's TLS port switches to a renewed certificate without a failed request", async () => {
  await keep(testCertificate());
  await start();
  await eventually(() => serialShown());
  const kept = new Agent({ keepAlive: true, maxSockets: 1 });
  cleanups.push(() => kept.destroy());
  let isOver = false;
  const answers = new Set<string>();
  const visits = (async () => {
    while (!isOver) for (const agent of [kept, new Agent()]) answers.add(await ask(agent));
  })();
  await keep(renewedCertificate());
  await eventually(async () => expect(await serialShown()).toBe(serialOf(renewedCertificate())));
  isOver = true;
  await visits;
  expect([...answers]).toEqual(['200 fine']);
});

it("the platform's TLS port uses a wildcard if no better certificate exists, and none of other hosts", async () => {
  await keep(testCertificate(), 'other.test');
  await start();
  await tls.look();
  await expect(shake()).rejects.toThrow();
  await keep(renewedCertificate(), '*.localhost other.localhost');
  await tls.look();
  expect(await serialShown()).toBe(serialOf(renewedCertificate()));
  await keep(testCertificate());
  await tls.look();
  expect(await serialShown()).toBe(serialOf(testCertificate()));
});

it("the platform's TLS port keeps its certificate if the next one is broken or mismatched", async () => {
  await keep(testCertificate());
  await start();
  await tls.look();
  await keep({ cert: renewedCertificate().cert, key: testCertificate().key });
  await tls.look();
  await tls.look();
  expect(await serialShown()).toBe(serialOf(testCertificate()));
  await keep(renewedCertificate());
  await sql`update certificates set certificate = certificate || '{"serial":"x","key":"nothing"}'`.execute(fixture.db);
  await tls.look();
  expect(await serialShown()).toBe(serialOf(testCertificate()));
});

it("the platform's TLS port serves tls-alpn-01 challenges for its host even before its first certificate", async () => {
  await start();
  const alpn = { ALPNProtocols: ['acme-tls/1'] };
  await expect(shake(alpn)).rejects.toThrow();
  challenges = [{ type: 'tls-alpn-01', name: HOST, token: 'tok', keyAuthorization: 'tok.thumb' }];
  const shown = await shake(alpn);
  const [acme] = shown.getPeerX509Certificate()?.subjectAltName?.split(', ') ?? [];
  expect([shown.alpnProtocol, acme]).toEqual(['acme-tls/1', `DNS:${HOST}`]);
  await expect(shake({ ...alpn, servername: 'other.localhost' })).rejects.toThrow();
});

it("the platform's TLS port serves http-01 unencrypted on any host, and 400 otherwise", async () => {
  await start();
  const url = `http://127.0.0.1:${server.address.port}`;
  challenges = [{ type: 'http-01', name: HOST, token: 'tok', keyAuthorization: 'tok.thumb' }];
  const answered = await fetch(`${url}/.well-known/acme-challenge/tok`);
  expect([answered.status, await answered.text()]).toEqual([200, 'tok.thumb']);
  expect((await fetch(`${url}/.well-known/acme-challenge/other`)).status).toBe(404);
  for (const path of ['/kept', '/.well-known/', '/auth/login']) {
    const refused = await fetch(`${url}${path}`, { headers: { authorization: 'Bearer x' } });
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'API_HTTPS_ONLY' }]);
  }
});
