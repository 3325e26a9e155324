import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { EDGE_LINK_PATH } from '@tunnel/contract';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { eventually, temporaryDirectory, testCertificate } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { DatabaseProxy } from './db/database-proxy.fixture.ts';
import { createTestDatabase, type TestDatabase } from './db/test-database.fixture.ts';
import { createPlatform, type PlatformDeps } from './platform.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const endings: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

const openDatabase = async (options: { empty?: boolean } = {}): Promise<TestDatabase> => {
  const database = await createTestDatabase(options);
  endings.push(() => database.close());
  return database;
};

const newFolder = async () => {
  const folder = await temporaryDirectory();
  endings.push(() => folder.close());
  return folder;
};

const ADMIN_TOKEN = new Secret('the-token-of-the-operator');

const startPlatform = async (databaseUrl: Secret, deps: Partial<PlatformDeps> = {}) => {
  const folder = await newFolder();
  const config = loadServerConfig({
    env: {},
    overrides: { platform: { port: 0, plans: { free: { tunnel_limit: 7 } } } },
  });
  const dataDir = folder.path;
  const given = { clock: systemClock, logger, version: '1', adminToken: ADMIN_TOKEN, databaseUrl, dataDir };
  const platform = createPlatform(config, { ...given, ...deps });
  await platform.start();
  endings.push(() => platform.stop());
  const url = `http://127.0.0.1:${platform.address.port}`;
  const ask = (path: string, init: RequestInit = {}) => fetch(url + path, init);
  const status = async (path: string): Promise<number> => (await ask(path)).status;
  return { platform, dataDir, ask, status };
};

const post = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

it('the platform serves TLS on its port with the configured certificate files', async () => {
  const { url: databaseUrl } = await openDatabase();
  const folder = await newFolder();
  const { cert, key } = testCertificate();
  const paths = { cert_path: join(folder.path, 'cert.pem'), key_path: join(folder.path, 'key.pem') };
  writeFileSync(paths.cert_path, cert);
  writeFileSync(paths.key_path, key);
  const overrides = { platform: { port: 0, tls: true, public_url: 'https://localhost' }, tls: paths };
  const given = {
    clock: systemClock,
    logger,
    version: '1',
    adminToken: ADMIN_TOKEN,
    databaseUrl,
    dataDir: folder.path,
  };
  const platform = createPlatform(loadServerConfig({ env: {}, overrides }), given);
  await platform.start();
  endings.push(() => platform.stop());
  const { port, tls } = platform.address;
  expect(tls).toBe(true);
  const [response] = (await once(
    get({ host: '127.0.0.1', port, path: '/health', ca: cert, servername: 'localhost' }),
    'response',
  )) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  response.destroy();
});

describe('the platform', () => {
  it('supports the whole flow of sign-up, mail verification, sign-in, key creation and usage', async () => {
    const { url } = await openDatabase({ empty: true });
    const { ask, dataDir } = await startPlatform(url);
    const account = { email: 'ada@example.com', password: 'correct horse' };
    expect((await ask('/auth/register', post(account))).status).toBe(201);
    const mail = await eventually(() => {
      const folder = join(dataDir, 'mail');
      const [file = ''] = readdirSync(folder).filter((name) => name.endsWith('.eml'));
      return readFileSync(join(folder, file), 'utf8');
    });
    const link = /\/auth\/verify-email\/[\w-]+/.exec(mail.replaceAll(/=\r?\n/g, ''))?.[0] ?? '';
    expect((await ask(link)).status).toBe(200);
    const login = (await (await ask('/auth/login', post(account))).json()) as { access_token: string };
    const authorization = `Bearer ${login.access_token}`;
    const key = await ask('/keys', post({ label: 'laptop' }, { authorization }));
    expect(await key.json()).toMatchObject({ token: expect.stringMatching(/^tnl_/) });
    const usage = await ask('/usage', { headers: { authorization } });
    expect(await usage.json()).toMatchObject({ active_tunnels: 0, plan: 'free', tunnel_limit: 7 });
    const pools = await ask('/load-balancing/groups', { headers: { authorization } });
    expect(await pools.json()).toEqual({ groups: [], warnings: [] });
  });

  it('lists every public operation in its OpenAPI document, and no edge operations', async () => {
    const { url } = await openDatabase();
    const { ask } = await startPlatform(url);
    const { paths } = (await (await ask('/openapi.json')).json()) as { paths: Record<string, object> };
    const specified = [
      ...['/auth/register', '/auth/verify-email/{token}', '/auth/login', '/auth/logout', '/auth/refresh', '/auth/me'],
      ...['/auth/forgot-password', '/auth/reset-password', '/keys', '/keys/{id}', '/usage', '/usage/chart'],
      ...['/usage/tunnels', '/usage/tunnels/{id}', '/usage/tunnels/{id}/requests', '/load-balancing/groups'],
      ...['/health', '/health/db', '/auth/resend-verification', '/auth/sessions', '/auth/sessions/{id}'],
      ...['/usage/tunnels/{id}/health-events', '/usage/tunnels/{id}/requests/{request_id}/replay'],
      ...['/.well-known/jwks.json', '/billing', '/billing/subscribe', '/billing/setup-intent', '/billing/portal'],
      ...['/billing/invoices', '/billing/spend-cap', '/billing/webhook'],
    ];
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(specified));
    expect(Object.keys(paths).filter((path) => path.startsWith('/internal'))).toEqual([]);
    expect((await ask('/docs')).status).toBe(200);
  });

  it('starts without a database, serving health and 503, and creates the tables once available', async () => {
    const proxy = new DatabaseProxy((await openDatabase({ empty: true })).url);
    endings.push(() => proxy.cut());
    const { ask, status } = await startPlatform(await proxy.reserve());
    expect([await status('/health'), await status('/health/db')]).toEqual([200, 503]);
    const keys = await ask('/keys');
    expect([keys.status, keys.headers.get('retry-after')]).toEqual([503, '2']);
    expect(await keys.json()).toMatchObject({ code: 'DATABASE_AWAY' });
    await proxy.open();
    await eventually(async () => expect(await status('/keys')).toBe(401), { timeoutMs: 20_000 });
    expect(await status('/health/db')).toBe(200);
  });

  it('survives a database outage under load with no error other than 503', async () => {
    const proxy = new DatabaseProxy((await openDatabase()).url);
    const through = await proxy.reserve();
    await proxy.open();
    endings.push(() => proxy.cut());
    const { ask, status } = await startPlatform(through);
    const seen = new Set<number>();
    let over = false;
    const visitor = async (): Promise<void> => {
      for (let n = 0; !over; n += 1) {
        const body = post({ email: `nobody-${n}@example.com`, token: 'x'.repeat(43), password: 'long enough' });
        seen.add((await ask('/auth/reset-password', body)).status);
        seen.add(await status('/.well-known/jwks.json'));
      }
    };
    const visitors = Promise.all([visitor(), visitor(), visitor()]);
    await proxy.cut();
    await eventually(async () => expect(await status('/health/db')).toBe(503));
    expect(await status('/health')).toBe(200);
    await eventually(() => expect(seen).toContain(503));
    await proxy.open();
    await eventually(async () => expect(await status('/health/db')).toBe(200), { timeoutMs: 20_000 });
    over = true;
    await visitors;
    expect([...seen].filter((code) => code >= 500 && code !== 503)).toEqual([]);
  });

  it("serves its local edge on a separate listener with the stack's credential", async () => {
    const { url } = await openDatabase();
    const localEdge = { credential: new Secret('tne_of-this-stack'), url: () => null, callsAtPort: 0 };
    const { platform } = await startPlatform(url, { localEdge });
    const { host, port } = platform.stackAddress!;
    expect([host, port]).not.toEqual([host, platform.address.port]);
    const call = (credential: string) =>
      fetch(
        `http://${host}:${port}/internal/edge/keys/verify`,
        post({ token_hash: '0'.repeat(64) }, { authorization: `Bearer ${credential}` }),
      );
    expect((await call('tne_wrong')).status).toBe(401);
    const answer = await call(localEdge.credential.reveal());
    expect([answer.status, await answer.json()]).toMatchObject([200, { ok: false }]);
    // The local edge's listener serves neither the API nor its pages.
    for (const path of ['/health', '/keys', '/app/']) {
      expect((await fetch(`http://${host}:${port}${path}`)).status).toBe(404);
    }
  });

  it('shows metrics to the operator and to its local edge', async () => {
    const { url } = await openDatabase();
    const localEdge = { credential: new Secret('tne_of-this-stack'), url: () => null, callsAtPort: 0 };
    const { platform, ask, status } = await startPlatform(url, { localEdge });
    await eventually(async () => expect(await status('/health/db')).toBe(200));
    const as = (token: Secret) => ({ headers: { authorization: `Bearer ${token.reveal()}` } });
    const shown = await eventually(async () => {
      const answer = await ask('/metrics', as(ADMIN_TOKEN));
      expect(answer.status).toBe(200);
      return answer.text();
    });
    expect(shown).toContain('tunnel_oauth_grants 0');
    expect(shown).toContain(`tunnel_build_info{version="1",node="${process.versions.node}"} 1`);
    expect(await status('/metrics')).toBe(401);
    expect((await ask('/metrics', as(localEdge.credential))).status).toBe(401);
    const { host, port } = platform.stackAddress ?? { host: '', port: 0 };
    const link = `http://${host}:${port}${EDGE_LINK_PATH}/metrics`;
    const ofEdge = await (await fetch(link, as(localEdge.credential))).text();
    expect(shown.startsWith(ofEdge)).toBe(true);
    // The edge exports the versions itself.
    expect(ofEdge).not.toContain('tunnel_build_info');
    expect((await fetch(link)).status).toBe(401);
  });

  it('exports metrics of backups and of its process outside a stack', async () => {
    const { url } = await openDatabase();
    const figures = { lastSuccessSecs: 1_790_000_000, failures: 1, archiveFailures: 7 };
    const { ask, status } = await startPlatform(url, { backups: () => figures });
    await eventually(async () => expect(await status('/health/db')).toBe(200));
    const shown = await (
      await ask('/metrics', { headers: { authorization: `Bearer ${ADMIN_TOKEN.reveal()}` } })
    ).text();
    expect(shown).toContain('\ntunnel_backup_last_success_timestamp_seconds 1790000000\n');
    expect(shown).toContain('\ntunnel_backup_failures_total 1\n');
    expect(shown).toContain('\ntunnel_wal_archive_failures_total 7\n');
    expect(shown).toMatch(/^process_resident_memory_bytes \d+/m);
  });

  it('fails with CONFIG_PORT_TAKEN if its port is in use, and leaves nothing open', async () => {
    const { url } = await openDatabase();
    const { platform } = await startPlatform(url);
    const config = loadServerConfig({ env: {}, overrides: { platform: { port: platform.address.port } } });
    const second = createPlatform(config, {
      clock: systemClock,
      logger,
      version: '1',
      adminToken: ADMIN_TOKEN,
      databaseUrl: url,
      dataDir: (await newFolder()).path,
    });
    await expect(second.start()).rejects.toMatchObject({ code: 'CONFIG_PORT_TAKEN' });
  });
});
