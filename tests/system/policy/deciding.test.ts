// Tests of requests during a rule decision: pipeline order, visitors that leave, requested bodies, upgrades, and a stopping edge.
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { WebSocket } from 'ws';
import {
  echoSockets,
  type OpenTunnel,
  openHttp,
  readUntil,
  sendRaw,
  startWeb,
  wholeBody,
} from '../http-tunnels.fixture.ts';
import { type Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';

const SECRET = 'what the sender signs with';
const BODY = JSON.stringify({ event: 'push', text: 'z'.repeat(2000) });
const SIGNATURE = `sha256=${createHmac('sha256', SECRET).update(BODY).digest('hex')}`;
const AUTHORIZATION = `Authorization: Basic ${Buffer.from('me:the password').toString('base64')}`;

/** Policy with a slow decision: passwords are checked with scrypt, which takes time. */
const POLICY = `
- { match: { path: "/hook" }, verify_webhook: { provider: github, secret: "${SECRET}" } }
- { match: { path: ["/slow/**", "/ws"] }, auth: { basic: { users: { me: "the password" } } } }
`;

interface Deciding extends OpenTunnel {
  readonly stack: Stack;
  readonly urls: string[];
  readonly bodies: string[];
}

const start = async (harness: Harness): Promise<Deciding> => {
  const [urls, bodies]: [string[], string[]] = [[], []];
  const web = harness.use(
    await startWeb(async (request, response) => {
      urls.push(request.url ?? '');
      bodies.push((await wholeBody(request)).toString());
      response.end(`served ${request.url}`);
    }),
  );
  const sockets = echoSockets(web);
  harness.use({ close: async () => sockets.close() });
  const stack = await harness.stack();
  const file = join(await harness.folder(), 'policy.yml');
  writeFileSync(file, POLICY);
  return { ...(await openHttp(harness, stack, web.port, ['--policy', file])), stack, urls, bodies };
};

const get = (path: string, ...fields: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: {host}', ...fields, '', ''].join('\r\n');
const POST_HOOK = [
  'POST /hook HTTP/1.1',
  'Host: {host}',
  `Content-Length: ${BODY.length}`,
  `X-Hub-Signature-256: ${SIGNATURE}`,
];

describe.concurrent('requests that wait for a rule decision', () => {
  it('are answered in pipeline order', async ({ harness }) => {
    const { endpoint, urls } = await start(harness);
    const requests = get('/1') + get('/slow/2', AUTHORIZATION) + get('/3') + get('/slow/4') + get('/5');
    const heard = await readUntil(await sendRaw(endpoint, requests), /served \/5/);
    expect(heard.match(/HTTP\/1\.1 \d+/g)).toEqual(
      ['200', '200', '200', '401', '200'].map((status) => `HTTP/1.1 ${status}`),
    );
    expect(urls).toEqual(['/1', '/slow/2', '/3', '/5']);
  });

  it('leave no memory in use if their visitors leave, and the next visitor is served', async ({ harness }) => {
    const { endpoint, urls, stack } = await start(harness);
    for (let n = 0; n < 10; n += 1) {
      const wrong = `Authorization: Basic ${Buffer.from(`me:wrong ${n}`).toString('base64')}`;
      (await sendRaw(endpoint, get('/slow/x', wrong))).destroy();
      const half = await sendRaw(endpoint, [...POST_HOOK, '', BODY.slice(0, 500)].join('\r\n'));
      await new Promise((resolve) => setImmediate(resolve));
      half.destroy();
    }
    await eventually(async () => expect(await stack.metric('tunnel_policy_held_bytes')).toBe(0));
    const heard = await readUntil(await sendRaw(endpoint, get('/open')), /served \/open/);
    expect([heard.slice(0, 12), urls]).toEqual(['HTTP/1.1 200', ['/open']]);
  });

  it('get 100 Continue from the edge, and their webhook body arrives byte for byte', async ({ harness }) => {
    const { endpoint, urls, bodies } = await start(harness);
    const socket = await sendRaw(endpoint, [...POST_HOOK, 'Expect: 100-continue', '', ''].join('\r\n'));
    await readUntil(socket, /^HTTP\/1\.1 100 Continue\r\n\r\n$/);
    expect(urls).toEqual([]);
    socket.write(BODY);
    expect(await readUntil(socket, /served \/hook/)).toMatch(/^HTTP\/1\.1 200 /);
    expect(bodies).toEqual([BODY]);
  });

  it('can be WebSockets, which connect with the password and get a 401 without it', async ({ harness }) => {
    const { endpoint } = await start(harness);
    const dial = (headers: Record<string, string>): WebSocket =>
      new WebSocket(`ws://127.0.0.1:${endpoint.port}/ws`, { headers: { host: endpoint.host, ...headers } });
    const stranger = dial({});
    const [, refused] = (await once(stranger, 'unexpected-response')) as [unknown, { statusCode: number }];
    expect(refused.statusCode).toBe(401);
    stranger.on('error', () => {});
    stranger.terminate();
    const socket = dial({ authorization: AUTHORIZATION.slice('Authorization: '.length) });
    await once(socket, 'open');
    socket.send('hello');
    expect(String((await once(socket, 'message'))[0])).toBe('hello');
    socket.terminate();
  });

  it('with an incomplete body are answered before a stopping edge exits with 0', async ({ harness }) => {
    const { endpoint, stack, urls } = await start(harness);
    // With a forged body the edge itself responds. A client can leave a stopping edge before the body is complete.
    const forged = BODY.replace('push', 'pull');
    const socket = await sendRaw(endpoint, [...POST_HOOK, '', forged.slice(0, 700)].join('\r\n'));
    await eventually(async () => expect(await stack.metric('tunnel_policy_held_bytes')).toBe(700));
    stack.program.signal('SIGTERM');
    const ended = once(socket, 'end');
    socket.write(forged.slice(700));
    const heard = await readUntil(socket, /<\/html>/);
    expect(heard).toMatch(/^HTTP\/1\.1 403 [^]*POLICY_WEBHOOK_REFUSED/);
    await ended;
    socket.end();
    expect(urls).toEqual([]);
    expect((await stack.program.waitForExit()).code).toBe(0);
  });

  it('get a 200 or a 503 with Retry-After, never a misleading error, if they pass while the edge stops', async ({
    harness,
  }) => {
    const { endpoint, stack } = await start(harness);
    const socket = await sendRaw(endpoint, [...POST_HOOK, '', BODY.slice(0, 700)].join('\r\n'));
    await eventually(async () => expect(await stack.metric('tunnel_policy_held_bytes')).toBe(700));
    stack.program.signal('SIGTERM');
    const ended = once(socket, 'end');
    socket.write(BODY.slice(700));
    const heard = await readUntil(socket, /served \/hook|<\/html>/);
    expect(heard).toMatch(/^HTTP\/1\.1 (?:200 |503 [^]*Retry-After: 1\r\n[^]*EDGE_SHUTTING_DOWN)/i);
    await ended;
    socket.end();
    expect((await stack.program.waitForExit()).code).toBe(0);
  });
});
