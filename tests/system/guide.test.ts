// The guide of a running platform, over real sockets: every page with its links, headers, and requests that try to leave the guide.

import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT } from '../repo/checkout.fixture.ts';
import { Harness } from './in-process.fixture.ts';

const shared = new Harness();
let url: string;
beforeAll(async () => {
  const stack = await shared.stack({ command: 'platform' });
  url = String(stack.run.platform_url);
});
afterAll(() => shared.close());

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** Sends the path unchanged, because fetch would normalize it. */
const ask = (path: string, method = 'GET', headers: Record<string, string> = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { hostname, port, host } = new URL(url);
    const call = request({ hostname, port, path, method, headers: { host, ...headers }, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
    });
    call.on('error', reject).end();
  });

it('every page, picture and link of the guide is served from the front page on', async () => {
  const front = new URL('docs/guide/', `${url}/`).pathname;
  const [seen, queue] = [new Map<string, Answer>(), [front]];
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    if (seen.has(path)) continue;
    const answer = await ask(path);
    seen.set(path, answer);
    if (!path.startsWith(front) || !String(answer.headers['content-type']).startsWith('text/html')) continue;
    for (const [, target = ''] of answer.text.matchAll(/ (?:href|src)="([^"]*)"/g)) {
      const next = new URL(target, new URL(path, url));
      if (next.origin === new URL(url).origin) queue.push(next.pathname);
    }
  }
  const failed = [...seen].filter(([, { status }]) => status !== 200).map(([path, { status }]) => `${status} ${path}`);
  expect(failed).toEqual([]);
  const types = [...seen.values()].map(({ headers }) => String(headers['content-type']));
  expect(types.filter((type) => type.startsWith('text/html')).length).toBeGreaterThan(38);
  expect(types.filter((type) => type === 'image/png').length).toBeGreaterThan(4);
  expect([...seen.keys()]).toEqual(expect.arrayContaining(['/docs', '/app/']));
});

it('a page is sent compressed with its policy and an ETag, and answers HEAD and If-None-Match', async () => {
  const page = await ask('/docs/guide/http', 'GET', { 'accept-encoding': 'br' });
  expect(page.headers).toMatchObject({
    'content-encoding': 'br',
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    vary: 'accept-encoding',
    'content-security-policy': expect.stringMatching(/^default-src 'none'; style-src 'self'; img-src 'self';/),
  });
  const known = { 'accept-encoding': 'br', 'if-none-match': String(page.headers['etag']) };
  expect(await ask('/docs/guide/http', 'GET', known)).toMatchObject({ status: 304, text: '' });
  const head = await ask('/docs/guide/http', 'HEAD', { 'accept-encoding': 'br' });
  expect(head).toMatchObject({ status: 200, text: '', headers: { 'content-length': page.headers['content-length'] } });
});

it('no path leads out of the guide', async () => {
  const { name } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { name: string };
  for (const path of [
    '/docs/guide/../../../package.json',
    '/docs/guide/../tunnel-server.js',
    '/docs/guide/%2e%2e/tunnel-server.js',
    '/docs/guide/..%2ftunnel-server.js',
    '/docs/guide/..%5ctunnel-server.js',
    '/docs/guide/..\\tunnel-server.js',
    '/docs/guide/recipes/../../tunnel-server.js',
    '/docs/guide//etc/passwd',
    '/docs/guide/%00',
    '/docs/guide/http%00.html',
    '/docs/guide/%ff',
    '/docs/guide/http.html',
    '/docs/guide/nothing',
  ]) {
    const { status, text } = await ask(path);
    expect([400, 404], path).toContain(status);
    expect(text).not.toMatch(new RegExp(`${name}|root:|import `));
  }
});
