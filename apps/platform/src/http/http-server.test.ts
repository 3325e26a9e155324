import { once } from 'node:events';
import { connect, Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { type Clock, createLogger, systemClock } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LIMITS } from '../limits.ts';
import { openGate } from './gate.fixture.ts';
import { HttpServer } from './http-server.ts';
import { createPlatformApp } from './platform-app.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const settings = { trusted_proxies: [], public_url: 'http://localhost:8080' };

const open: HttpServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.stop();
});

const start = async ({ port = 0, clock = systemClock as Clock, api = 100 } = {}) => {
  const app = createPlatformApp({ logger, settings });
  let finish = (): void => {};
  const slow = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let arrived = (): void => {};
  const asked = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  app.get('/address', (context) => context.text(context.get('address')));
  app.get('/page', (context) => {
    context.header('content-security-policy', "default-src 'self'");
    return context.html('<p>');
  });
  app.post('/echo', async (context) => context.text(await context.req.text()));
  app.get('/slow', async (context) => {
    arrived();
    await slow;
    return context.text('done');
  });
  const server = new HttpServer({ host: '127.0.0.1', port, app, gate: openGate(api), clock, logger });
  await server.start();
  open.push(server);
  return { server, finish, asked, url: `http://127.0.0.1:${server.address.port}` };
};

const say = async (port: number, bytes: string): Promise<string> => {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(bytes);
  return text(socket);
};

describe('the HTTP server of the platform', () => {
  it('serves the app, and knows the address of the caller', async () => {
    const { url } = await start();
    const answer = await fetch(`${url}/address`, { headers: { 'x-request-id': 'mine' } });
    expect(await answer.text()).toBe('127.0.0.1');
    expect(answer.headers.get('x-request-id')).toBe('mine');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
    const page = await fetch(`${url}/page`);
    expect(page.headers.get('content-security-policy')).toBe("default-src 'self'");
  });

  it.each([
    ['rubbish', 'rubbish\r\n\r\n', 400],
    ['a host that is none', 'GET /address HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n', 400],
    ['no host', 'GET /address HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    [
      'an expectation that nobody knows',
      'GET /none HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n\r\n',
      404,
    ],
    ['an odd target', 'GET //[ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 404],
    ['TRACE', 'TRACE /address HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 405],
    ['no body where one is announced', 'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n', 400],
    ['a broken escape', 'GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 404],
  ])('answers %s with JSON and an id', async (_, bytes, status) => {
    const { server } = await start();
    const answer = await say(server.address.port, bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/\r\nx-request-id: req_\w+\r\n/i);
    expect(answer).toMatch(/\{"error":"[^"]+","code":"[A-Z_]+","request_id":"req_\w+"\}/);
  });

  it('says of a head that is too large that it is', async () => {
    const { server } = await start();
    const answer = await say(
      server.address.port,
      `GET /address HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 400 .*"error":"the headers of the request are over 16384 bytes"/s);
  });

  it('refuses a body that grows over the limit while it comes', async () => {
    const { server } = await start();
    const chunk = `ffff\r\n${'a'.repeat(0xffff)}\r\n`;
    const head = 'POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
    const answer = await say(server.address.port, `${head}${chunk}${chunk}`);
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
  });

  it('lets a request finish when it stops, and takes no other', async () => {
    // Time stands still: however slow the machine is, the request is within its grace.
    const clock = new FakeClock();
    const { server, url, finish, asked } = await start({ clock });
    const answer = fetch(`${url}/slow`);
    await asked;
    const stopped = server.stop();
    await expect(fetch(`${url}/address`)).rejects.toThrow();
    finish();
    expect(await (await answer).text()).toBe('done');
    // The connection of the caller, which is idle now, is swept away.
    await clock.advance(LIMITS.HTTP_STOP_GRACE_MS);
    await stopped;
  });

  it('names the port that is taken and the key that sets it', async () => {
    const { server } = await start();
    await expect(start({ port: server.address.port })).rejects.toMatchObject({
      code: 'CONFIG_PORT_TAKEN',
      values: { key: '[platform] port', port: server.address.port },
    });
  });
});

it('a connection that cannot be accepted, as when no descriptors are left, does not end the process', async () => {
  const listen = vi.spyOn(Server.prototype, 'listen');
  const { server, url } = await start();
  const [inner] = listen.mock.contexts;
  listen.mockRestore();
  expect(() => (inner as Server).emit('error', new Error('accept ENFILE'))).not.toThrow();
  expect(server.isOpen).toBe(true);
  expect((await fetch(`${url}/address`)).status).toBe(200);
});
