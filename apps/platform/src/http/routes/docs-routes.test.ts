import { createLogger, loadServerConfig, systemClock } from '@tunnel/runtime';
import { describe, expect, it } from 'vitest';
import { Database } from '../../db/database.ts';
import { type ApiDocument, operationsOf } from '../document/document-types.ts';
import { ScriptedEdges } from '../platform.fixture.ts';
import { createPlatformApp } from '../platform-app.ts';
import { addDocsRoutes } from './docs-routes.ts';
import { addHealthRoutes } from './health-routes.ts';
import { addKeyRoutes } from './key-routes.ts';
import { addLoadBalancingRoutes, addUsageRoutes } from './usage-routes.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const config = loadServerConfig({ env: {}, overrides: { platform: { public_url: 'https://tunnel.example/' } } });
const settings = config.platform;
const { db } = new Database({ url: config.database.url, logger });
const needs = {
  ...{ db, clock: systemClock, logger, settings, version: '1', edges: new ScriptedEdges() },
  requireUser: (_: unknown, next: () => Promise<void>) => next(),
};
const app = createPlatformApp({ logger, settings });
addDocsRoutes(app, needs);
addKeyRoutes(app, needs);
addUsageRoutes(app, needs);
addLoadBalancingRoutes(app, needs);
addHealthRoutes(app, needs);

const document = (await (await app.request('/openapi.json')).json()) as ApiDocument;
const response = await app.request('/docs');
const page = await response.text();

describe('GET /openapi.json', () => {
  it('is OpenAPI 3.1.0 of version 0.2.24', () => {
    expect([document.openapi, document.info.version]).toEqual(['3.1.0', '0.2.24']);
  });

  it('has every operation that the app serves, also those that were added after it', () => {
    const served = app.routes.filter(({ method }) => method !== 'ALL').map(({ method, path }) => `${method} ${path}`);
    const told = operationsOf(document).map(
      ({ method, path }) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    );
    expect(new Set(told)).toEqual(new Set(served));
  });

  it('names, describes and exemplifies every answer, errors too', () => {
    const ids = new Set<string | undefined>();
    for (const { path, method, operation } of operationsOf(document)) {
      const place = `${method} ${path}`;
      ids.add(operation.operationId);
      expect([place, operation.summary, operation.tags?.[0]]).toEqual([place, expect.any(String), expect.any(String)]);
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['500', '503']));
      for (const [status, answer] of Object.entries(operation.responses)) {
        expect([place, status, answer.description]).toEqual([place, status, expect.stringMatching(/\S/)]);
        for (const media of Object.values(answer.content ?? {})) {
          expect([place, status, media.example]).not.toEqual([place, status, undefined]);
          if (Number(status) >= 400) expect(media.example).toMatchObject({ error: expect.not.stringMatching(/[{}]/) });
        }
      }
    }
    expect(ids.size).toBe(operationsOf(document).length);
  });

  it('says 413 and 415 where a body is read, and gives an example of it', () => {
    const post = document.paths['/keys']?.['post'];
    expect(Object.keys(post?.responses ?? {})).toEqual(['201', '400', '401', '403', '413', '415', '500', '503']);
    expect(post?.requestBody?.content['application/json']?.example).toEqual({ label: 'laptop' });
  });

  it('refers to nothing that is missing', () => {
    const references = JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g);
    for (const [whole, kind = '', name = ''] of references) {
      const group = document.components[kind as 'schemas'];
      expect([whole, Object.hasOwn(group, name)]).toEqual([whole, true]);
    }
  });
});

describe('GET /docs', () => {
  it('is a page that loads and runs nothing', () => {
    expect(response.headers.get('content-type')).toMatch(/^text\/html/);
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'/);
    expect(page).not.toMatch(/<script|<img|<iframe|@import|url\(|style="|\son\w+=/);
    const hosts = [...page.matchAll(/(?:href|src)="([^"#]*)/g)].map(([, target]) => target).filter((target) => target);
    expect(new Set(hosts)).toEqual(new Set(['data:,', '/openapi.json']));
  });

  it('has an anchor for every link, and for every operation and schema', () => {
    const ids = new Set([...page.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id));
    const links = [...page.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(links.filter((id) => !ids.has(id))).toEqual([]);
    expect(ids).toContain('post-keys');
    expect(ids).toContain('get-usage-tunnels-id-requests');
    expect(ids).toContain('schema-tunnellogentry');
  });

  it('shows how to ask', () => {
    expect(page).toContain('curl -X POST &#39;https://tunnel.example/keys&#39;');
    expect(page).toContain('authorization: Bearer &lt;ACCESS_TOKEN&gt;');
    expect(page).toContain('-d &#39;{&quot;label&quot;:&quot;laptop&quot;}&#39;');
  });
});
