import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { createLogger, systemClock } from '@tunnel/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openGate } from '../../server/gate.fixture.ts';
import { HttpServer } from '../../server/http-server.ts';
import { createPlatformApp } from '../../server/platform-app.ts';
import { addDashboardRoutes, DASHBOARD_POLICY, readDashboard } from './dashboard-routes.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const settings = { trusted_proxies: [], public_url: 'http://localhost:8080', host: '127.0.0.1' };
const folder = mkdtempSync(join(tmpdir(), 'dashboard-'));
const PAGE = '<!doctype html><title>Tunnel</title>';
const SCRIPT = 'export const long = "text";'.repeat(20);

beforeAll(() => {
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), PAGE);
  writeFileSync(join(folder, 'start.js'), 'start');
  writeFileSync(join(folder, 'notes.txt'), 'not for the world');
  const script = join(folder, 'assets/index-CelweEAm.js');
  writeFileSync(script, SCRIPT);
  writeFileSync(`${script}.gz`, gzipSync(SCRIPT));
  writeFileSync(`${script}.br`, brotliCompressSync(SCRIPT));
});
afterAll(() => rmSync(folder, { recursive: true }));

const makeApp = (from = folder, databaseReady = true) => {
  const app = createPlatformApp({ logger, settings, databaseReady: () => databaseReady });
  addDashboardRoutes(app, readDashboard(from));
  return app;
};
const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  makeApp().request(path, { method, headers });
const get = async (path: string, headers: Record<string, string> = {}) => {
  const answer = await ask(path, headers);
  return { answer, status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) };
};

const ASSET = '/app/assets/index-CelweEAm.js';

describe('the dashboard page', () => {
  it.each(['/app/', '/app/login', '/app/tunnels/6c1b8f5e', '/app/reset-password?token=a.b', '/app/index.html'])(
    'is served at %s',
    async (path) => {
      const { status, bytes, answer } = await get(path);
      expect([status, bytes.toString()]).toEqual([200, PAGE]);
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(answer.headers.get('cache-control')).toBe('no-cache');
    },
  );

  it('has a security policy without foreign or inline content', async () => {
    const { headers } = await ask('/app/');
    expect(headers.get('content-security-policy')).toBe(DASHBOARD_POLICY);
    expect(DASHBOARD_POLICY).not.toMatch(/unsafe|http|\*/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(headers.get('permissions-policy')).toContain('camera=()');
    expect(headers.get('x-frame-options')).toBe('DENY');
  });

  it('is the redirect target of /app, with the query kept', async () => {
    const answer = await ask('/app?next=x');
    expect([answer.status, answer.headers.get('location')]).toEqual([308, '/app/?next=x']);
  });

  it('is the redirect target of / for browsers, while programs get 404', async () => {
    const page = await ask('/', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' });
    expect([page.status, page.headers.get('location')]).toEqual([302, '/app/']);
    for (const accept of ['*/*', 'application/json', '']) expect((await ask('/', { accept })).status).toBe(404);
  });

  it('is served while the database is unavailable', async () => {
    const app = makeApp(folder, false);
    expect((await app.request('/app/login')).status).toBe(200);
    expect((await app.request(ASSET)).status).toBe(200);
  });

  it('returns 405 to other methods', async () => {
    const answer = await ask('/app/login', {}, 'POST');
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('returns 503 with one sentence if the dashboard is not built', async () => {
    const answer = await makeApp(join(folder, 'nowhere')).request('/app/');
    expect([answer.status, (await answer.text()).trim().split('\n')]).toEqual([
      503,
      [expect.stringContaining('not built')],
    ]);
  });
});

describe('a dashboard file', () => {
  it('with a content hash in its name is immutable, other files are revalidated', async () => {
    const { answer } = await get(ASSET);
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect((await get('/app/start.js')).answer.headers.get('cache-control')).toBe('no-cache');
  });

  it.each([
    ['br, gzip', 'br', brotliDecompressSync],
    ['gzip, deflate', 'gzip', gunzipSync],
    ['br;q=0, gzip;q=0.5', 'gzip', gunzipSync],
    ['*', 'br', brotliDecompressSync],
  ] as const)('is sent compressed to clients that accept %s', async (accepted, packing, unpack) => {
    const { answer, bytes } = await get(ASSET, { 'accept-encoding': accepted });
    expect(answer.headers.get('content-encoding')).toBe(packing);
    expect(answer.headers.get('vary')).toBe('accept-encoding');
    expect(answer.headers.get('content-length')).toBe(String(bytes.length));
    expect(unpack(bytes).toString()).toBe(SCRIPT);
  });

  it.each(['', 'identity', 'br;q=0', 'zstd'])('is sent uncompressed to clients that accept %j', async (accepted) => {
    const { answer, bytes } = await get(ASSET, { 'accept-encoding': accepted });
    expect([answer.headers.get('content-encoding'), bytes.toString()]).toEqual([null, SCRIPT]);
  });

  it('returns 304 for a cached version in the same encoding', async () => {
    const etagOf = async (encoding: string) =>
      (await ask(ASSET, { 'accept-encoding': encoding })).headers.get('etag') ?? '';
    const etag = await etagOf('br');
    const again = await get(ASSET, { 'accept-encoding': 'br', 'if-none-match': `"other", W/${etag}` });
    expect([again.status, again.bytes.length, again.answer.headers.get('etag')]).toEqual([304, 0, etag]);
    const other = await get(ASSET, { 'accept-encoding': 'gzip', 'if-none-match': etag });
    expect([other.status, await etagOf('gzip')]).not.toEqual([304, etag]);
  });

  it('has the same headers for HEAD as for GET', async () => {
    const whole = await ask(ASSET);
    const head = await ask(ASSET, {}, 'HEAD');
    for (const name of ['content-length', 'etag', 'content-type', 'cache-control']) {
      expect(head.headers.get(name)).toBe(whole.headers.get(name));
    }
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  it.each(['/app/assets/index-AAAAAAAA.js', '/app/assets/', '/app/assets/x', '/app/gone.png', '/app/notes.txt'])(
    'that does not exist returns 404: %s',
    async (path) => {
      const answer = await ask(path, { accept: 'text/html' });
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([404, 'API_NOT_FOUND']);
    },
  );
});

it('no path leads to a file outside of the dashboard folder', async () => {
  writeFileSync(join(folder, '../outside.js'), 'secret');
  const server = new HttpServer({
    host: '127.0.0.1',
    port: 0,
    app: makeApp(),
    gate: openGate(),
    clock: systemClock,
    logger,
  });
  await server.start();
  try {
    for (const path of [
      '/app/../outside.js',
      '/app/%2e%2e/outside.js',
      '/app/..%2foutside.js',
      '/app/assets/..%2f..%2foutside.js',
      '/app/..\\outside.js',
      '/app//etc/passwd',
      '/app/%00.js',
    ]) {
      const text = await rawGet(server.address.port, path);
      expect([path, text.includes('secret'), text.includes('root:')]).toEqual([path, false, false]);
    }
  } finally {
    await server.stop();
    rmSync(join(folder, '../outside.js'));
  }
});

/** Sends the path unchanged, because fetch would normalize it. */
const rawGet = (port: number, path: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path, agent: false }, (answer) => {
      let text = '';
      answer.on('data', (chunk: Buffer) => (text += chunk.toString()));
      answer.on('end', () => resolve(text));
    });
    call.on('error', reject).end();
  });
