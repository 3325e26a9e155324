// Tests of the platform behind the public ports of the edge, as in a public installation, with certificates from files.
import { readFileSync } from 'node:fs';
import { request as requestPlain } from 'node:http';
import { connect } from 'node:http2';
import { request as requestTls } from 'node:https';
import { join } from 'node:path';
import { eventually, freePort } from '@tunnel/testkit';
import { afterAll, beforeAll, expect } from 'vitest';
import { Harness, it } from './in-process.fixture.ts';
import { TLS_CERT } from './stack.fixture.ts';

const CA = readFileSync(TLS_CERT);
const PAGE = { accept: 'text/html' };

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

const ask = (url: string, { headers = {}, body = '' }: { headers?: Record<string, string>; body?: string } = {}) =>
  new Promise<Answer>((resolve, reject) => {
    const options = { method: body === '' ? 'GET' : 'POST', headers, agent: false, ca: CA };
    const call = (url.startsWith('https:') ? requestTls : requestPlain)(url, options, (response) => {
      let read = '';
      response.on('data', (chunk: Buffer) => {
        read += chunk.toString();
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: read }));
    });
    call.on('error', reject);
    call.end(body);
  });

const startFronted = async (harness: Harness, programs = false) => {
  const https = await freePort();
  const http = await freePort();
  const url = `https://localhost:${https}`;
  const env = {
    TUNNEL_SERVER__HTTPS_PORT: `${https}`,
    TUNNEL_SERVER__HTTP_PORT: `${http}`,
    TUNNEL_PLATFORM__PUBLIC_URL: url,
    TUNNEL_PLATFORM__LIMITS__AUTH_PER_MINUTE: '3',
  };
  const stack = await harness.stack({ command: 'stack', tls: true, env, programs });
  return { stack, url, plain: `http://localhost:${http}` };
};

const shared = new Harness();
let fronted: Awaited<ReturnType<typeof startFronted>>;
beforeAll(async () => {
  fronted = await startFronted(shared);
});
afterAll(() => shared.close());

it('a single HTTPS port serves dashboard, API and tunnels over HTTP/1.1 and HTTP/2, and plain HTTP redirects to it', async () => {
  const { stack, url, plain } = fronted;
  const app = await ask(`${url}/app/`, { headers: PAGE });
  expect([app.status, app.headers['strict-transport-security']]).toEqual([200, 'max-age=31536000']);
  expect(app.body).toContain('<!doctype html>');
  const session = connect(url, { ca: CA });
  const status = await new Promise((resolve, reject) => {
    session.on('error', reject);
    session.request({ ':path': '/openapi.json' }).on('response', (head) => resolve(head[':status']));
  });
  session.destroy();
  expect(status).toBe(200);
  const moved = await ask(`${plain}/app/`);
  expect([moved.status, moved.headers['location']]).toEqual([308, `${url}/app/`]);
  expect(moved.headers).not.toHaveProperty('strict-transport-security');
  const direct = await ask(`${stack.run.platform_url}/health`);
  expect([direct.status, direct.headers['strict-transport-security']]).toEqual([200, undefined]);
  expect(stack.program.stdout.join('\n')).toContain(`dashboard    ${url}/app/`);
});

it('login limits of the platform count by real visitor address, not by a claimed X-Forwarded-For', async () => {
  const { url } = fronted;
  const login = (claimed: string) =>
    ask(`${url}/auth/login`, {
      headers: { 'content-type': 'application/json', 'x-forwarded-for': claimed, 'x-tunnel-secret': 'guessed' },
      body: JSON.stringify({ email: 'nobody@example.com', password: 'wrong wrong wrong' }),
    });
  const statuses: number[] = [];
  for (let at = 0; at < 5; at += 1) statuses.push((await login(`198.51.100.${at}`)).status);
  expect(statuses).toEqual([401, 401, 401, 429, 429]);
});

it('a killed platform is reported as PLATFORM_AWAY and restarts automatically', async ({ harness }) => {
  const { stack, url } = await startFronted(harness, true);
  expect((await ask(`${url}/health`)).status).toBe(200);
  const { pid } = JSON.parse(readFileSync(join(stack.dataDir, 'platform.lock'), 'utf8')) as { pid: number };
  process.kill(pid, 'SIGKILL');
  await eventually(
    async () => {
      const { status, body } = await ask(`${url}/health`);
      if (status !== 200) expect([status, body]).toEqual([503, expect.stringContaining('PLATFORM_AWAY')]);
      expect(status).toBe(200);
    },
    { timeoutMs: 30_000 },
  );
});
