import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, systemClock } from '@tunnel/runtime';
import { afterAll, describe, expect, it } from 'vitest';
import { Database } from '../../../db/database.ts';
import { oauthAddresses } from '../../../services/oauth/oauth-addresses.ts';
import { ScriptedEdges } from '../../server/platform.fixture.ts';
import { createPlatformApp } from '../../server/platform-app.ts';
import { addKeyRoutes } from '../keys/key-routes.ts';
import { addReservationRoutes } from '../names/reservation-routes.ts';
import { addOauthConsentRoutes } from '../oauth/oauth-consent-routes.ts';
import { addHealthRoutes } from '../operations/health-routes.ts';
import { addLoadBalancingRoutes, addUsageRoutes } from '../usage/usage-routes.ts';
import { addDocsRoutes } from './docs-routes.ts';
import { type ApiDocument, operationsOf } from './openapi-document.ts';
import { readStaticFiles } from './static-files.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const config = loadServerConfig({ env: {}, overrides: { platform: { public_url: 'https://tunnel.example/' } } });
const settings = config.platform;
const { db } = new Database({ url: config.database.url, logger });
const deps = {
  db,
  clock: systemClock,
  logger,
  settings,
  version: '1',
  edges: new ScriptedEdges(),
  requireUser: (_: unknown, next: () => Promise<void>) => next(),
};
const folder = mkdtempSync(join(tmpdir(), 'viewer-'));
const SCRIPT = 'const long = "text";'.repeat(20);
writeFileSync(join(folder, 'swagger-ui-bundle.js'), SCRIPT);
writeFileSync(join(folder, 'swagger-ui-bundle.js.gz'), gzipSync(SCRIPT));
writeFileSync(join(folder, 'swagger-ui.css'), 'a{}');
afterAll(() => rmSync(folder, { recursive: true }));

const app = createPlatformApp({ logger, settings });
addDocsRoutes(app, { viewer: readStaticFiles(folder) });
addKeyRoutes(app, deps);
addUsageRoutes(app, deps);
addLoadBalancingRoutes(app, deps);
addHealthRoutes(app, deps);
addOauthConsentRoutes(app, {
  ...deps,
  addresses: oauthAddresses(settings.public_url),
  clientDocuments: { find: () => Promise.reject(new Error('not asked')) },
  limits: { countAddress: () => {} },
});
addReservationRoutes(app, { ...deps, names: config.names, accountShare: config.limits.account_share });

const document = (await (await app.request('/openapi.json')).json()) as ApiDocument;
const response = await app.request('/docs');
const page = await response.text();

describe('GET /openapi.json', () => {
  it('is OpenAPI 3.1.0 of version 0.2.24', () => {
    expect([document.openapi, document.info.version]).toEqual(['3.1.0', '0.2.24']);
  });

  it('lists every operation of the app, even those added later', () => {
    // The files of the docs page are not part of the API.
    const served = app.routes
      .filter(({ method, path }) => method !== 'ALL' && !path.startsWith('/docs/'))
      .map(({ method, path }) => `${method} ${path}`);
    const told = operationsOf(document).map(
      ({ method, path }) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    );
    expect(new Set(told)).toEqual(new Set(served));
  });

  it('gives example pages for HTML responses and an example URI for URIs', () => {
    const answers = operationsOf(document).flatMap(({ operation }) => Object.values(operation.responses));
    const pages = answers.flatMap(({ content }) => content?.['text/html'] ?? []);
    expect(pages.length).toBeGreaterThan(2);
    for (const { example } of pages) expect(example).toMatch(/^<!doctype html>/);
    const { examples } = document.components.schemas['OauthDecided']?.properties?.['redirect_to'] ?? {};
    expect(examples?.[0]).toMatch(/^[!-~]+$/);
  });

  it('describes invalid reservations: a region for a subdomain, and non-numeric ports', () => {
    const described = document.components.schemas['NewReservation']?.anyOf as
      | { properties: { label: { pattern: string } } }[]
      | undefined;
    const [subdomain, port] = described?.map(({ properties }) => new RegExp(properties.label.pattern)) ?? [];
    expect(['shop', '*.shop', 'Shop-1'].every((label) => subdomain?.test(label))).toBe(true);
    expect(['', '-a', 'a-', 'a.b', 'a_b', `${'a'.repeat(64)}`].some((label) => subdomain?.test(label))).toBe(false);
    expect(['1', '20042', '65535'].every((label) => port?.test(label))).toBe(true);
    expect(['', '0', '080', 'http', '-1'].some((label) => port?.test(label))).toBe(false);
    expect(described?.[0]).toMatchObject({ not: { required: ['region_id'] } });
  });

  it('names, describes and exemplifies every response, including errors', () => {
    const ids = new Set<string | undefined>();
    for (const { path, method, operation } of operationsOf(document)) {
      const operationName = `${method} ${path}`;
      ids.add(operation.operationId);
      expect([operationName, operation.summary, operation.tags?.[0]]).toEqual([
        operationName,
        expect.any(String),
        expect.any(String),
      ]);
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['500', '503']));
      for (const [status, answer] of Object.entries(operation.responses)) {
        expect([operationName, status, answer.description]).toEqual([
          operationName,
          status,
          expect.stringMatching(/\S/),
        ]);
        for (const [type, media] of Object.entries(answer.content ?? {})) {
          expect([operationName, status, media.example]).not.toEqual([operationName, status, undefined]);
          if (Number(status) < 400 || type === 'text/html') continue;
          expect(media.example).toMatchObject({ error: expect.not.stringMatching(/[{}]/) });
        }
      }
    }
    expect(ids.size).toBe(operationsOf(document).length);
  });

  it('lists 413 and 415 for operations with a body, 429 for limited calls, and an example body', () => {
    const post = document.paths['/keys']?.['post'];
    expect(Object.keys(post?.responses ?? {})).toEqual(['201', '400', '401', '403', '413', '415', '429', '500', '503']);
    expect(Object.keys(document.paths['/usage']?.['get']?.responses ?? {})).toContain('429');
    expect(Object.keys(document.paths['/health']?.['get']?.responses ?? {})).not.toContain('429');
    expect(post?.requestBody?.content['application/json']?.example).toEqual({ label: 'laptop' });
  });

  it('has no dangling references', () => {
    const references = JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g);
    for (const [whole, kind = '', name = ''] of references) {
      const group = document.components[kind as 'schemas'];
      expect([whole, Object.hasOwn(group, name)]).toEqual([whole, true]);
    }
  });
});

describe('GET /docs', () => {
  it('is a page without foreign or inline content', async () => {
    expect(response.headers.get('content-type')).toMatch(/^text\/html/);
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(page).not.toMatch(/<style|<script(?! src=)|style="|\son\w+=/);
    const targets = [...page.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, target = '']) => target);
    // The dashboard is served by routes that are missing in the app under test.
    expect(targets).toContain('app/');
    for (const target of targets.filter((each) => each !== 'data:,' && each !== 'app/')) {
      expect([target, (await app.request(`/${target}`)).status]).toEqual([target, 200]);
    }
  });

  it('serves the files of its viewer, plain and compressed', async () => {
    const script = await app.request('/docs/swagger-ui-bundle.js', { headers: { 'accept-encoding': 'gzip' } });
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    expect(script.headers.get('content-encoding')).toBe('gzip');
    expect(gunzipSync(Buffer.from(await script.arrayBuffer())).toString()).toBe(SCRIPT);
    expect(await (await app.request('/docs/swagger-ui-bundle.js')).text()).toBe(SCRIPT);
    expect((await app.request('/docs/other.js')).status).toBe(404);
    expect((await app.request('/docs/%2e%2e%2fsecret')).status).toBe(404);
  });
});
