import { createServer, type IncomingHttpHeaders, request, type Server } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { request as requestTls } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { loadServerConfig } from '@tunnel/config/server';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { eventually, freePort, testCertificate } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RawClient } from '../control/raw-client.fixture.ts';
import { createEdge } from '../edge.ts';
import type { Edge } from '../edge-interface.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const SECRET = 'the secret of this run';
const tlsFile = (name: string): string =>
  fileURLToPath(new URL(`../../../../packages/testkit/fixtures/tls/${name}`, import.meta.url));

interface Asked {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

let platform: Server;
let asked: Asked[];
const edges: Edge[] = [];
const sockets: Socket[] = [];

beforeEach(async () => {
  asked = [];
  platform = createServer((incoming, response) => {
    asked.push({ url: incoming.url ?? '', headers: incoming.headers });
    incoming.resume().on('end', () => response.end(`the platform: ${incoming.url}`));
  });
  platform.on('upgrade', (incoming, socket: Socket) => {
    asked.push({ url: incoming.url ?? '', headers: incoming.headers });
    sockets.push(socket);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => platform.listen(0, '127.0.0.1', resolve));
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const edge of edges.splice(0)) await edge.stop({ drainMs: 0 });
  platform.closeAllConnections();
  await new Promise((resolve) => platform.close(resolve));
});

const start = async (server: object, more: object): Promise<Edge> => {
  const config = loadServerConfig({
    env: {},
    overrides: { server: { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0, ...server }, ...more },
  });
  const { port } = platform.address() as AddressInfo;
  const edge = createEdge(config, {
    clock: systemClock,
    logger,
    adminToken: new Secret('admin'),
    platformAt: { host: '127.0.0.1', port, secret: new Secret(SECRET) },
  });
  edges.push(edge);
  await edge.start();
  return edge;
};

/** Starts an unencrypted edge. The platform's address names its port. */
const startPlain = async (host: string): Promise<number> => {
  const port = await freePort();
  const public_url = `http://${host}:${port}`;
  await start({ http_port: port, domain: 'edge.test' }, { platform: { public_url } });
  return port;
};

const visit = (
  port: number,
  host: string,
  path = '/',
  headers: Record<string, string> = {},
): Promise<{ status: number; body: string; headers: IncomingHttpHeaders }> =>
  new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path, headers: { host, ...headers }, agent: false }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }));
    });
    call.on('error', reject);
    call.end();
  });

describe("the platform's host", () => {
  it("reaches the platform, which learns the visitor's address only from the edge", async () => {
    const port = await startPlain('edge.test');
    const forged = { 'x-tunnel-secret': 'guessed', x_tunnel_secret: 'guessed', 'x-forwarded-for': '198.51.100.1' };
    const { status, body } = await visit(port, `Edge.TEST.:${port}`, '/app/?a=1', forged);
    expect([status, body]).toEqual([200, 'the platform: /app/?a=1']);
    expect(asked[0]?.headers).toMatchObject({
      'x-tunnel-secret': SECRET,
      'x-forwarded-for': '198.51.100.1, 127.0.0.1',
      'x-forwarded-proto': 'http',
      host: `Edge.TEST.:${port}`,
    });
    expect(asked[0]?.headers).not.toHaveProperty('x_tunnel_secret');
  });

  it('keeps the paths of clients, and other hosts do not change', async () => {
    const port = await startPlain('console.example');
    expect((await visit(port, 'console.example', '/_speed')).body).not.toContain('the platform');
    expect((await visit(port, 'console.example', '/_control?x')).body).not.toContain('the platform');
    expect(await visit(port, 'edge.test')).toMatchObject({ status: 404 });
    expect(await visit(port, 'shop.edge.test')).toMatchObject({ status: 404 });
    expect(asked).toEqual([]);
    expect(await visit(port, 'console.example', '/_controls')).toMatchObject({ status: 200 });
  });

  it('carries an upgraded connection in both directions, with the half-close', async () => {
    const port = await startPlain('edge.test');
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    sockets.push(socket);
    let read = '';
    let hasEnded = false;
    socket.on('data', (chunk: Buffer) => {
      read += chunk.toString();
    });
    socket.on('end', () => {
      hasEnded = true;
    });
    socket.write('GET /events HTTP/1.1\r\nHost: edge.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
    await eventually(() => expect(read).toContain('101 Switching'));
    socket.end('and back');
    await eventually(() => expect([read.endsWith('and back'), hasEnded]).toEqual([true, true]));
    expect(asked[0]?.headers).toMatchObject({ 'x-tunnel-secret': SECRET });
  });

  it('gets 503 while the platform is not running, and is served as soon as it runs', async () => {
    const port = await startPlain('edge.test');
    expect(await visit(port, 'edge.test')).toMatchObject({ status: 200 });
    const { port: at } = platform.address() as AddressInfo;
    platform.closeAllConnections();
    await new Promise((resolve) => platform.close(resolve));
    const { status, body, headers } = await visit(port, 'edge.test');
    expect([status, headers['retry-after']]).toEqual([503, expect.any(String)]);
    expect(body).toContain('The platform is not running right now');
    await new Promise<void>((resolve) => platform.listen(at, '127.0.0.1', resolve));
    expect(await visit(port, 'edge.test')).toMatchObject({ status: 200 });
  });

  it('directly below the domain is one more reserved subdomain', async () => {
    const port = await freePort();
    const public_url = `http://console.edge.test:${port}`;
    const edge = await start({ http_port: port, domain: 'edge.test' }, { platform: { public_url } });
    const { client } = await RawClient.enter(edge.addresses.control.port, 'admin');
    for (const subdomain of ['console', 'Console', 'a.console', '*.console']) {
      expect(await client.refused({ protocol: 'http', subdomain })).toMatchObject({ code: 'TUNNEL_SUBDOMAIN_INVALID' });
    }
  });
});

describe("the platform's host over TLS", () => {
  const startSecure = async (): Promise<{ https: number; http: number }> => {
    const https = await freePort();
    const http = await freePort();
    const tls = { cert_path: tlsFile('cert.pem'), key_path: tlsFile('key.pem') };
    const public_url = `https://localhost:${https}`;
    await start({ https_port: https, http_port: http, domain: 'localhost' }, { tls, platform: { public_url } });
    return { https, http };
  };

  it('speaks HTTP/1.1 and HTTP/2, and plain HTTP visitors are redirected to it', async () => {
    const { https, http } = await startSecure();
    const { cert: ca } = testCertificate();
    const first = await new Promise<string>((resolve, reject) => {
      const call = requestTls({ host: 'localhost', port: https, path: '/one', ca, agent: false }, (response) => {
        response.on('data', (chunk: Buffer) => resolve(chunk.toString()));
      });
      call.on('error', reject);
      call.end();
    });
    const session = connectHttp2(`https://localhost:${https}`, { ca });
    const second = await new Promise<string>((resolve, reject) => {
      session.on('error', reject);
      const stream = session.request({ ':path': '/two' });
      stream.on('data', (chunk: Buffer) => resolve(chunk.toString()));
    });
    session.destroy();
    expect([first, second]).toEqual(['the platform: /one', 'the platform: /two']);
    expect(asked.map(({ headers }) => headers['x-forwarded-proto'])).toEqual(['https', 'https']);
    const moved = await visit(http, `localhost:${http}`, '/app/?a=1');
    expect([moved.status, moved.headers.location]).toEqual([308, `https://localhost:${https}/app/?a=1`]);
  });
});
