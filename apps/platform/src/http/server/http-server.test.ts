import { once } from 'node:events';
import { connect, Server } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type Clock, createLogger, systemClock } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { LIMITS } from '../../limits.ts';
import { openGate } from './gate.fixture.ts';
import { HttpServer } from './http-server.ts';
import { createPlatformApp, type PlatformAppOptions } from './platform-app.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const settings = { trusted_proxies: [], public_url: 'http://localhost:8080', host: '127.0.0.1' };

const open: HttpServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.stop();
});

interface StartOptions {
  readonly port?: number;
  readonly clock?: Clock;
  /** Maximum number of API connections. */
  readonly api?: number;
}

const start = async ({
  port = 0,
  clock = systemClock as Clock,
  api = 100,
  ...deps
}: Partial<PlatformAppOptions> & StartOptions = {}) => {
  const app = createPlatformApp({ logger, settings, ...deps });
  let finish = (): void => {};
  const slow = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let arrived = (): void => {};
  const asked = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  app.get('/address', (context) => context.text(context.get('address')));
  for (const path of ['/health', '/health/db', '/internal/edge/changes'])
    app.get(path, (context) => context.text('ok'));
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

describe("the platform's HTTP server", () => {
  it("serves the app and knows the caller's address", async () => {
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
      'GET /none HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\nConnection: close\r\n\r\n',
      404,
    ],
    ['an odd target', 'GET //[ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 404],
    ['TRACE', 'TRACE /address HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 405],
    ['no body where one is announced', 'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n', 400],
    ['a broken escape', 'GET /%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 404],
  ])('responds to %s with JSON and a request ID', async (_, bytes, status) => {
    const { server } = await start();
    const answer = await say(server.address.port, bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/\r\nx-request-id: req_\w+\r\n/i);
    expect(answer).toMatch(/\{"error":"[^"]+","code":"[A-Z_]+","request_id":"req_\w+"\}/);
  });

  const statusOf = async (port: number, target: string, ...headers: string[]): Promise<string> => {
    const head = [`GET ${target} HTTP/1.1`, ...headers, 'Connection: close'].join('\r\n');
    return (await say(port, `${head}\r\n\r\n`)).slice(9, 12);
  };

  it.each([
    ...['Host: localhost', 'Host: LocalHost:8080', 'Host: localhost.', 'Host: 127.0.0.1:1', 'Host: [::1]:8080'],
    'hOsT:127.0.0.1',
  ])('responds to the host %s', async (header) => {
    const { server } = await start();
    expect(await statusOf(server.address.port, '/address', header)).toBe('200');
  });

  it.each([
    'evil.example',
    'evil.example:8080',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    '10.0.0.1',
    'a.localhost',
  ])('returns 421 with a message for the foreign host %s, except on probes and edge paths', async (name) => {
    const { server } = await start();
    const { port } = server.address;
    const answer = await say(port, `GET /address HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 421 /);
    expect(answer).toContain(`{"error":"this platform does not serve the host \`${name}\`","code":"API_WRONG_HOST"`);
    for (const path of ['/nothing', '/', '/healthy', '/internal', '/health/db/x', '/internal/edge']) {
      expect([path, await statusOf(port, path, `Host: ${name}`)]).toEqual([path, '421']);
    }
    for (const path of ['/health', '/health/db', '/internal/edge/changes', '/health?verbose']) {
      expect([path, await statusOf(port, path, `Host: ${name}`)]).toEqual([path, '200']);
    }
  });

  it('uses the host of an absolute target instead of the Host header', async () => {
    const { server } = await start();
    const { port } = server.address;
    expect(await statusOf(port, 'http://localhost/address', 'Host: localhost')).toBe('200');
    expect(await statusOf(port, 'http://localhost:8080/address', 'Host: 127.0.0.1')).toBe('200');
    expect(await statusOf(port, 'http://evil.example/address', 'Host: localhost')).toBe('421');
    expect(await statusOf(port, 'http://localhost/address', 'Host: evil.example')).toBe('421');
    expect(await statusOf(port, 'http://evil.example/health', 'Host: evil.example')).toBe('200');
    expect(await statusOf(port, '/address')).toBe('400');
    expect(await statusOf(port, 'http://localhost/address')).toBe('421');
  });

  it.each(['GET %s HTTP/1.0\r\n\r\n', 'GET %s HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n'])(
    'responds to a probe without a host (%j), but rejects other paths with 400',
    async (head) => {
      const { server } = await start();
      const ask = async (path: string) => (await say(server.address.port, head.replace('%s', path))).slice(9, 12);
      for (const path of ['/health', '/health/db']) expect([path, await ask(path)]).toEqual([path, '200']);
      for (const path of ['/address', '/nothing']) expect([path, await ask(path)]).toEqual([path, '400']);
    },
  );

  it("on a public address serves only public_url and the simulator's webhooks", async () => {
    const { server } = await start({
      settings: { ...settings, host: '0.0.0.0', public_url: 'https://tunnel.example' },
    });
    const { port } = server.address;
    for (const [name, status] of [
      ['tunnel.example', '200'],
      ['TUNNEL.example:443', '200'],
      ['tunnel.example:80', '421'],
      [`127.0.0.1:${port}`, '421'],
      ['localhost', '421'],
    ] as const) {
      expect([name, await statusOf(port, '/address', `Host: ${name}`)]).toEqual([name, status]);
    }
    // Webhooks of a local simulator use the IP address as host. Other paths stay closed to that host.
    expect(await statusOf(port, '/billing/webhook', `Host: 127.0.0.1:${port}`)).toBe('404');
    expect(await statusOf(port, '/address', `Host: 127.0.0.1:${port}`)).toBe('421');
    expect(await statusOf(port, '/billing/webhook', 'Host: evil.example')).toBe('421');
  });

  it('names the cause when request headers are too large', async () => {
    const { server } = await start();
    const answer = await say(
      server.address.port,
      `GET /address HTTP/1.1\r\nHost: localhost\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 400 .*"error":"the request headers are larger than 16384 bytes"/s);
  });

  it('rejects a chunked body once it exceeds the limit, with 413', async () => {
    const { server } = await start();
    const chunk = `ffff\r\n${'a'.repeat(0xffff)}\r\n`;
    const head = 'POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n';
    const answer = await say(server.address.port, `${head}${chunk}${chunk}`);
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
  });

  it.each([
    ['announced', 'Content-Length: 1000\r\n\r\n{"a', 'resetAndDestroy'],
    ['announced', 'Content-Length: 1000\r\n\r\n{"a', 'end'],
    ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n', 'resetAndDestroy'],
    ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n', 'end'],
  ] as const)(
    'ends an upload %s that breaks off (%#) as 499, logged at debug level only, without blaming the database',
    async (_, rest, leave) => {
      const output = new PassThrough();
      const told = createLogger({ level: 'debug', format: 'json', stream: output });
      const onDatabaseAway = vi.fn();
      const newRequestId = vi.fn(() => 'req_1');
      const { server } = await start({ logger: told, onDatabaseAway, newRequestId });
      const socket = connect(server.address.port, '127.0.0.1');
      await once(socket, 'connect');
      socket.write(`POST /echo HTTP/1.1\r\nHost: localhost\r\n${rest}`);
      await eventually(() => expect(newRequestId).toHaveBeenCalled());
      socket.on('error', () => {});
      socket[leave]();
      const lines = await eventually(async () => {
        await told.flush();
        const said = String(output.read() ?? '');
        expect(said).toContain('a caller disconnected');
        return said;
      });
      expect(lines).toMatch(/"level":"?(20|debug)/);
      expect(lines).not.toMatch(/"level":"?(30|40|50|60|info|warn|error)/);
      expect(onDatabaseAway).not.toHaveBeenCalled();
    },
  );

  it('lets a running request finish while stopping, and accepts no further connections', async () => {
    // The fake clock stands still, so the request stays within its grace time however slow the machine is.
    const clock = new FakeClock();
    const { server, url, finish, asked } = await start({ clock });
    const answer = fetch(`${url}/slow`);
    await asked;
    const stopped = server.stop();
    await expect(fetch(`${url}/address`)).rejects.toThrow();
    finish();
    expect(await (await answer).text()).toBe('done');
    // Sweeps the caller's connection, which is idle now.
    await clock.advance(LIMITS.HTTP_STOP_GRACE_MS);
    await stopped;
  });

  it('reports the port in use and its config key', async () => {
    const { server } = await start();
    await expect(start({ port: server.address.port })).rejects.toMatchObject({
      code: 'CONFIG_PORT_TAKEN',
      values: { key: '[platform] port', port: server.address.port },
    });
  });
});

it("the platform's HTTP server survives an accept error, as when file descriptors run out", async () => {
  const listen = vi.spyOn(Server.prototype, 'listen');
  const { server, url } = await start();
  const [inner] = listen.mock.contexts;
  listen.mockRestore();
  expect(() => (inner as Server).emit('error', new Error('accept ENFILE'))).not.toThrow();
  expect(server.isOpen).toBe(true);
  expect((await fetch(`${url}/address`)).status).toBe(200);
});
