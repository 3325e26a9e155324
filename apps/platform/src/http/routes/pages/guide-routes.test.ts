import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { createLogger } from '@tunnel/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPlatformApp } from '../../server/platform-app.ts';
import { addDocsRoutes } from './docs-routes.ts';
import { addGuideRoutes, GUIDE_POLICY } from './guide-routes.ts';
import { readStaticFiles } from './static-files.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const settings = { trusted_proxies: [], public_url: 'http://localhost:8080', host: '127.0.0.1' };
const folder = mkdtempSync(join(tmpdir(), 'guide-'));
const PAGE = `<!doctype html><title>HTTP</title>${'<p>text</p>'.repeat(50)}`;

beforeAll(() => {
  for (const name of ['recipes', 'assets']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'index.html'), '<title>Front</title>');
  writeFileSync(join(folder, 'http.html'), PAGE);
  writeFileSync(join(folder, 'http.html.gz'), gzipSync(PAGE));
  writeFileSync(join(folder, 'http.html.br'), brotliCompressSync(PAGE));
  writeFileSync(join(folder, 'recipes/steps.html'), '<title>Steps</title>');
  writeFileSync(join(folder, 'recipes/run.sh'), '#!/bin/sh\n');
  writeFileSync(join(folder, 'look.svg'), '<svg/>');
  writeFileSync(join(folder, 'assets/guide-0a1b2c3d.css'), 'a{}');
});
afterAll(() => rmSync(folder, { recursive: true }));

const makeApp = (databaseReady = true) => {
  const app = createPlatformApp({ logger, settings, databaseReady: () => databaseReady });
  addGuideRoutes(app, readStaticFiles(folder));
  addDocsRoutes(app, { viewer: new Map() });
  return app;
};
const ask = async (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
  makeApp().request(path, { method, headers });

describe('pages of the guide', () => {
  it.each([
    ['/docs/guide/', '<title>Front</title>'],
    ['/docs/guide/http', PAGE],
    ['/docs/guide/http?x=1', PAGE],
    ['/docs/guide/recipes/steps', '<title>Steps</title>'],
  ])('%s is served with a policy that allows only its own style and pictures', async (path, text) => {
    const answer = await ask(path);
    expect([answer.status, await answer.text()]).toEqual([200, text]);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.headers.get('content-security-policy')).toBe(GUIDE_POLICY);
    expect(answer.headers.get('cache-control')).toBe('no-cache');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('allow no script, no foreign content, no frame and no form', () => {
    expect(GUIDE_POLICY).toBe(
      "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
  });

  it('are sent compressed, with an ETag for each form, and 304 for a known ETag', async () => {
    const accepting = (packings: string) => ask('/docs/guide/http', { 'accept-encoding': packings });
    const [br, gz, plain] = await Promise.all([accepting('gzip, br'), accepting('gzip'), accepting('')]);
    expect(brotliDecompressSync(Buffer.from(await br.arrayBuffer())).toString()).toBe(PAGE);
    expect(gunzipSync(Buffer.from(await gz.arrayBuffer())).toString()).toBe(PAGE);
    const etags = [br, gz, plain].map(({ headers }) => headers.get('etag') ?? '');
    expect(new Set(etags).size).toBe(3);
    const again = await ask('/docs/guide/http', { 'accept-encoding': 'gzip, br', 'if-none-match': etags[0] ?? '' });
    expect([again.status, await again.text()]).toEqual([304, '']);
  });

  it('answer HEAD without a body, and refuse other methods', async () => {
    const head = await ask('/docs/guide/http', {}, 'HEAD');
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([
      200,
      String(PAGE.length),
      '',
    ]);
    const post = await ask('/docs/guide/http', {}, 'POST');
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('are served before the database is ready', async () => {
    const answer = await makeApp(false).request('/docs/guide/http');
    expect(answer.status).toBe(200);
    expect((await makeApp(false).request('/docs')).status).toBe(503);
  });
});

describe('files of the guide', () => {
  it.each([
    ['/docs/guide/look.svg', 'image/svg+xml', 'no-cache'],
    ['/docs/guide/recipes/run.sh', 'text/plain; charset=utf-8', 'no-cache'],
    ['/docs/guide/assets/guide-0a1b2c3d.css', 'text/css; charset=utf-8', 'public, max-age=31536000, immutable'],
  ])('%s has the type %s', async (path, type, cache) => {
    const { status, headers } = await ask(path);
    expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([200, type, cache]);
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; /);
    expect(headers.get('content-security-policy')).not.toMatch(/script|https?:|\*/);
  });
});

describe('other addresses', () => {
  it('the folder without a slash leads to the front page, at any path of the platform', async () => {
    const answer = await ask('/docs/guide');
    expect([answer.status, answer.headers.get('location')]).toEqual([308, 'guide/']);
  });

  it.each([
    '/docs/guide/nothing',
    '/docs/guide/http/',
    '/docs/guide/http.html',
    '/docs/guide/http.html.gz',
    '/docs/guide/http.md',
    '/docs/guide/index',
    '/docs/guide/README',
    '/docs/guide/recipes',
    '/docs/guide/recipes/',
    '/docs/guide/%2e%2e/%2e%2e/package.json',
    '/docs/guide/..%2f..%2fpackage.json',
    '/docs/guide/%00',
  ])('%s is a 404', async (path) => {
    const answer = await ask(path);
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([404, 'API_NOT_FOUND']);
  });

  it('a browser gets a page that leads to the front page', async () => {
    const answer = await ask('/docs/guide/recipes/nothing', { accept: 'text/html,*/*;q=0.8' });
    expect([answer.status, answer.headers.get('vary')]).toEqual([404, 'accept']);
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(await answer.text()).toContain('<a class="go" href="../">');
    expect(await (await ask('/docs/guide/nothing', { accept: 'text/html' })).text()).toContain(
      '<a class="go" href="./">',
    );
  });

  it('without a build, every page names the command', async () => {
    const app = createPlatformApp({ logger, settings });
    addGuideRoutes(app, readStaticFiles(join(folder, 'missing')));
    const answer = await app.request('/docs/guide/http');
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('npm run build')]);
  });
});
