// Tests of the inspector that `tunnel http` opens on localhost for requests of its own page only.
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import {
  type Answer,
  askHttp,
  endpointOf,
  openHttp,
  type PublicEndpoint,
  startWeb,
  type WebService,
} from '../http-tunnels.fixture.ts';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

const shared = new Harness();
let stack: Stack;
let web: WebService;
const served: string[] = [];
/** Address of the inspector. */
let inspector: PublicEndpoint;
let endpoint: PublicEndpoint;

beforeAll(async () => {
  stack = await shared.stack();
  web = shared.use(
    await startWeb((request, response) => {
      served.push(request.url ?? '');
      response.end('served');
    }),
  );
  const open = await openHttp(shared, stack, web.port);
  endpoint = open.endpoint;
  expect(open.ready['inspect_url']).toMatch(/^http:\/\/127\.0\.0\.1:43\d\d\/$/);
  inspector = endpointOf(String(open.ready['inspect_url']));
});
afterAll(() => shared.close());

interface Summary {
  readonly id: string;
  readonly path: string;
}

const listed = async (): Promise<Summary[]> =>
  (JSON.parse((await askHttp(inspector, { path: '/api/requests' })).text) as { requests: Summary[] }).requests;

const find = (path: string): Promise<Summary> =>
  eventually(async () => {
    const found = (await listed()).find((one) => one.path === path);
    if (found === undefined) throw new Error(`${path} is not listed`);
    return found;
  });

const tokenOfPage = async (): Promise<string> =>
  /name="inspector-token" content="([^"]+)"/.exec((await askHttp(inspector)).text)?.[1] ?? '';

const replay = (id: string, headers: Record<string, string>): Promise<Answer> =>
  askHttp(inspector, { method: 'POST', path: `/api/requests/${id}/replay`, headers });

describe.concurrent('the inspector', () => {
  it('serves a page that loads no foreign content, and lists requests without secrets', async () => {
    const page = await askHttp(inspector);
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    await askHttp(endpoint, { path: '/listed?password=hidden' });
    await find('/listed?password=…');
  });

  it.for(['evil.example:{port}', '127.0.0.1', 'localhost.evil.example:{port}', '127.0.0.1:1'])(
    'rejects the Host %s with 421',
    async (host) => {
      const headers = { host: host.replace('{port}', String(inspector.port)) };
      for (const path of ['/', '/api/requests', '/page.js']) {
        expect((await askHttp(inspector, { path, headers })).status).toBe(421);
      }
    },
  );

  it('also accepts localhost as Host', async () => {
    expect((await askHttp(inspector, { headers: { host: `localhost:${inspector.port}` } })).status).toBe(200);
  });

  it('replays a request only for its own page, with the right Origin and token', async () => {
    await askHttp(endpoint, { path: '/again' });
    const { id } = await find('/again');
    const origin = `http://${inspector.host}`;
    const token = await tokenOfPage();
    for (const headers of [
      {},
      { origin },
      { 'x-inspector-token': token },
      { origin: 'http://evil.example', 'x-inspector-token': token },
      { origin, 'x-inspector-token': `${token}x` },
      { origin, 'x-inspector-token': token, 'sec-fetch-site': 'cross-site' },
    ] as Record<string, string>[]) {
      expect((await replay(id, headers)).status).toBe(403);
    }
    expect(served.filter((url) => url === '/again')).toHaveLength(1);
    expect((await replay(id, { origin, 'x-inspector-token': token })).status).toBe(202);
    await eventually(() => expect(served.filter((url) => url === '/again')).toHaveLength(2));
  });

  it('is off with --no-inspect, and each client has a separate inspector', async ({ harness }) => {
    const without = await openHttp(harness, stack, web.port, ['--no-inspect']);
    expect(without.ready['inspect_url']).toBeNull();
    const second = await openHttp(harness, stack, web.port);
    expect(second.ready['inspect_url']).toMatch(/^http:\/\/127\.0\.0\.1:43\d\d\/$/);
    expect(second.ready['inspect_url']).not.toBe(`http://${inspector.host}/`);
  });
});
