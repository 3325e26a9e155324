// `tunnel http` from the command line to the local service, through a real edge in the same process.
import { writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import { eventually, type TemporaryDirectory, temporaryDirectory, testCertificate } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTestIo, type TestIoOptions } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';
import { eventOf, Runs, type Started } from '../run/runs.fixture.ts';

let home: TemporaryDirectory;
let edge: Edge;
let service: Server;
let localPort: string;
let flags: string[];
const runs = new Runs();

beforeEach(async () => {
  home = await temporaryDirectory();
  service = createServer((request, response) => {
    response.statusCode = request.url === '/missing' ? 404 : 200;
    response.setHeader('content-type', 'text/plain');
    response.end(`${request.method ?? ''} ${request.headers.host ?? ''}`);
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  localPort = String((service.address() as AddressInfo).port);
  edge = await startEdge();
  flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'admin', '--drain-secs', '0'];
});
afterEach(async () => {
  await runs.end();
  await edge.stop({ drainMs: 0 });
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
  await home.close();
});

const start = (args: string[], options: Partial<TestIoOptions> = {}): Started => {
  const io = makeTestIo({ home: home.path, env: { NO_COLOR: '1' }, ...options });
  return runs.start(['http', localPort, ...args, ...flags], io);
};

/** Sends a visitor's request. Some systems do not resolve `*.localhost`, so the name is sent only in the Host header. */
const visit = (url: unknown, path: string): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const { host, port } = new URL(String(url));
    const sent = httpRequest({ host: '127.0.0.1', port, path, headers: { host }, agent: false }, (response) => {
      let text = '';
      response.on('data', (piece) => (text += String(piece)));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('error', reject).end();
  });

describe('`tunnel start`', () => {
  it('opens an http tunnel with the options from config.yml', async () => {
    const entry = `{proto: http, local_port: ${localPort}, subdomain: shop, host_header: app.test, capture: false}`;
    writeFileSync(join(home.path, 'tunnel.yml'), `tunnels:\n  web: ${entry}\n`);
    const io = makeTestIo({ home: home.path });
    runs.start(['start', '--config', 'tunnel.yml', '--json', ...flags], io);
    const ready = await eventOf(io, 'ready');
    // The tunnel captures no requests, so there is no inspector.
    expect(ready).toMatchObject({ name: 'web', inspect_url: null });
    expect((await visit(ready['public_url'], '/')).text).toBe('GET app.test');
    expect(await eventOf(io, 'request')).toMatchObject({ name: 'web', status: 200 });
  });
});

describe('`tunnel http`', () => {
  it('publishes a local service under a subdomain and reports each request', async () => {
    const { io, code } = start(['--subdomain', 'shop', '--json']);
    const ready = await eventOf(io, 'ready');
    expect(ready).toMatchObject({
      public_url: expect.stringMatching(/^http:\/\/shop\.localhost:\d+\/?$/) as string,
      name: `http-${localPort}`,
      protocol: 'http',
      assigned_port: null,
      local: `127.0.0.1:${localPort}`,
      inspect_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:43\d\d\/$/) as string,
    });
    expect(await visit(ready['public_url'], '/a?token=x')).toMatchObject({ status: 200 });
    expect(await eventOf(io, 'request')).toMatchObject({
      method: 'GET',
      path: '/a?token=…',
      status: 200,
      name: `http-${localPort}`,
      aborted: false,
      replay_of: null,
      duration_ms: expect.any(Number) as number,
      response_bytes: expect.any(Number) as number,
    });
    const inspected = (await (await fetch(`${String(ready['inspect_url'])}api/requests`)).json()) as object;
    expect(inspected).toMatchObject({ requests: [{ method: 'GET', path: '/a?token=…', status: 200 }] });
    io.signal('SIGINT');
    expect(await code).toBe(0);
  });

  it('carries a protocol after an upgrade, and reports only the upgrade request', async () => {
    service.on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
      socket.on('error', () => {});
      socket.pipe(socket);
    });
    const { io } = start(['--json']);
    const { host, port } = new URL(String((await eventOf(io, 'ready'))['public_url']));
    const headers = { host, connection: 'Upgrade', upgrade: 'echo' };
    const echoed = await new Promise<string>((resolve, reject) => {
      const sent = httpRequest({ host: '127.0.0.1', port, path: '/ws', headers, agent: false });
      sent.on('upgrade', (_response, socket) => {
        socket.on('data', (piece) => {
          socket.destroy();
          resolve(String(piece));
        });
        socket.write('GET /not-a-request HTTP/1.1\r\nHost: x\r\n\r\n');
      });
      sent.on('error', reject).end();
    });
    expect(echoed).toContain('GET /not-a-request');
    expect(await eventOf(io, 'request')).toMatchObject({ path: '/ws', status: 101, aborted: false });
    expect(io.events().filter((one) => one['event'] === 'request')).toHaveLength(1);
  });

  it('reaches a local service over TLS, and checks its certificate unless told not to', async () => {
    const secure = createSecureServer(testCertificate(), (_request, response) => response.end('over TLS'));
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
    const plainPort = localPort;
    localPort = String((secure.address() as AddressInfo).port);
    const strict = start(['--json', '--https']);
    const trusting = start(['--json', '--https', '--local-tls-no-verify']);
    const refused = await visit((await eventOf(strict.io, 'ready'))['public_url'], '/');
    expect(refused.status).toBe(502);
    await eventually(() => expect(strict.io.err()).toContain('is not trusted: self-signed certificate'));
    expect(await visit((await eventOf(trusting.io, 'ready'))['public_url'], '/')).toEqual({
      status: 200,
      text: 'over TLS',
    });
    localPort = plainPort;
    secure.closeAllConnections();
    secure.close();
  });

  it('rewrites the Host header with --host-header rewrite', async () => {
    const { io } = start(['--json', '--host-header', 'rewrite']);
    const ready = await eventOf(io, 'ready');
    expect((await visit(ready['public_url'], '/')).text).toBe(`GET 127.0.0.1:${localPort}`);
  });

  it('prints the URL, the inspector and a line for each request', async () => {
    const { io } = start(['--subdomain', 'shop']);
    const url = await eventually(() => {
      const found = /^http-\d+: (http:\/\/shop\.localhost:\d+\/?) -> 127\.0\.0\.1:\d+$/m.exec(io.out());
      expect(found).not.toBeNull();
      return found?.[1];
    });
    expect(io.out()).toMatch(/^inspector: http:\/\/127\.0\.0\.1:43\d\d\/$/m);
    await visit(url, '/missing');
    await eventually(() => expect(io.out()).toMatch(/^\d\d:\d\d:\d\d GET \/missing 404 [\d.]+ ms$/m));
  });

  it('draws requests above the status block on a terminal', async () => {
    const { io } = start(['--subdomain', 'shop'], { isTTY: true });
    const url = await eventually(() => {
      const found = /(http:\/\/shop\.localhost:\d+\/?) -> /.exec(io.out());
      expect(found).not.toBeNull();
      return found?.[1];
    });
    await visit(url, '/missing');
    await eventually(() => expect(io.out()).toMatch(/GET {5}\/missing {10,}404 +[\d.]+ ms(\u001b\[K)?\n/));
    await eventually(() => expect(io.out()).toMatch(/Requests {4}1 request, \d+ B in/));
    expect(io.out()).toMatch(/Inspector {3}http:\/\/127\.0\.0\.1:43\d\d\//);
  });

  it('has neither inspector nor request lines with --no-inspect and --quiet', async () => {
    const { io } = start(['--json', '--no-inspect', '--quiet']);
    const ready = await eventOf(io, 'ready');
    expect(ready['inspect_url']).toBeNull();
    await visit(ready['public_url'], '/');
    expect(io.events().some((one) => one['event'] === 'request')).toBe(false);
  });

  it('joins a group, probes the service, and reports when the service fails and recovers', async () => {
    const { io } = start(
      ['--json', '--group', 'shop', '--group-key-env', 'KEY', '--health', 'http:/healthz', '--health-interval', '0.02'],
      { env: { KEY: 'very secret' } },
    );
    // Groups are off on this edge, and the edge warns about it.
    const warnings = ['load balancing is off on this edge: this tunnel is served alone'];
    expect(await eventOf(io, 'ready')).toMatchObject({ group: 'shop', health: 'unknown', warnings });
    expect(await eventOf(io, 'health')).toMatchObject({ healthy: true, reason: '', group: 'shop' });
    service.closeAllConnections();
    await new Promise((resolve) => service.close(resolve));
    const health = (): Record<string, unknown>[] => io.events().filter((one) => one['event'] === 'health');
    await eventually(() => expect(health()).toHaveLength(2));
    expect(health()[1]).toMatchObject({ healthy: false, reason: 'connection refused', consecutive_failures: 3 });
    await new Promise<void>((resolve) => service.listen(Number(localPort), '127.0.0.1', resolve));
    await eventually(() => expect(health()).toHaveLength(3));
    expect(health()[2]).toMatchObject({ healthy: true, consecutive_failures: 0 });
    expect(io.out() + io.err()).not.toContain('very secret');
  });

  it("exits with 4 and the edge's message when the subdomain is in use", async () => {
    const first = start(['--subdomain', 'shop', '--json']);
    await eventOf(first.io, 'ready');
    const second = start(['--subdomain', 'shop', '--name', 'x']);
    expect(await second.code).toBe(4);
    expect(second.io.err()).toMatch(/^tunnel: x: subdomain 'shop' is already in use\n( {2}.*\n)?$/);
    expect(second.io.out()).toBe('');
  });
});
