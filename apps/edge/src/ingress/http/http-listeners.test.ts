// The https port: TLS versions, protocols, certificates, and connections that are not TLS.

import { once } from 'node:events';
import * as http from 'node:http';
import * as net from 'node:net';
import { checkServerIdentity, type TLSSocket } from 'node:tls';
import { allowStaticReads } from '@tunnel/mux';
import { systemClock } from '@tunnel/runtime';
import { eventually, renewedCertificate, testCertificate } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { HttpListeners } from './http-listeners.ts';
import { ask, dialTls, emptyStore, type HttpsStand, pairOf, startHttpsStand, visitHttp2 } from './https.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const start = async (): Promise<{ stand: HttpsStand; service: http.Server }> => {
  const service = http.createServer((request, response) => response.end(`${request.url} over ${proto(request)}`));
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  const stand = await startHttpsStand((service.address() as net.AddressInfo).port);
  cleanups.push(
    () => service.close(),
    () => service.closeAllConnections(),
    () => stand.stop(),
  );
  return { stand, service };
};

const proto = (request: http.IncomingMessage): string => String(request.headers['x-forwarded-proto']);

const secured = async (socket: TLSSocket): Promise<TLSSocket> => {
  cleanups.push(() => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
};

const GET = 'GET /a HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n';

const read = async (socket: TLSSocket, request: string): Promise<string> => {
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1');
  });
  socket.write(request);
  await once(socket, 'end');
  return answer;
};

it.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'the https port speaks %s and HTTP/1.1, with and without ALPN',
  async (version) => {
    const { stand } = await start();
    const pinned = { minVersion: version, maxVersion: version };
    const plain = await secured(dialTls(stand, pinned));
    expect([plain.getProtocol(), plain.alpnProtocol]).toEqual([version, false]);
    expect(await read(plain, GET)).toMatch(/^HTTP\/1\.1 200 OK[^]*\/a over https$/);
    const named = await secured(dialTls(stand, { ...pinned, ALPNProtocols: ['http/1.1'] }));
    expect(await read(named, GET)).toContain('/a over https');
    const both = await secured(dialTls(stand, { ...pinned, ALPNProtocols: ['http/1.1', 'h2'] }));
    expect(both.alpnProtocol).toBe('h2');
  },
);

it('the https port serves HTTP/1.1 and HTTP/2 with static reads off, when node:tls does every handshake', async () => {
  allowStaticReads(false);
  cleanups.push(() => allowStaticReads(true));
  const { stand } = await start();
  const plain = await secured(dialTls(stand));
  expect(await read(plain, GET)).toContain('/a over https');
  const session = visitHttp2(stand);
  cleanups.push(() => session.destroy());
  expect((await ask(session, { ':path': '/b' })).body).toBe('/b over https');
});

it('the https port presents its certificate for every name and without a name', async () => {
  const { stand } = await start();
  for (const servername of ['other.example', '']) {
    const socket = await secured(dialTls(stand, { servername }));
    expect(socket.getPeerCertificate().subject.CN).toBe('localhost');
  }
});

it('the https port closes plain HTTP, garbage and old TLS without an answer, and continues to serve', async () => {
  const { stand } = await start();
  const { port } = stand.port.address;
  for (const bytes of [GET, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '\x16\x03\x01\x00\x05hello']) {
    const socket = net.connect(port, '127.0.0.1');
    socket.on('error', () => {});
    let answer = '';
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1');
    });
    socket.write(bytes, 'latin1');
    await new Promise<void>((resolve) => socket.on('close', () => resolve()));
    expect(answer).not.toContain('HTTP/1.1');
  }
  const old = dialTls(stand, { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
  await expect(once(old, 'secureConnect')).rejects.toThrow();
  const strange = dialTls(stand, { ALPNProtocols: ['imap'] });
  await expect(once(strange, 'secureConnect')).rejects.toThrow();
  await eventually(() => expect(stand.port.handshakes).toBe(0));
  const session = visitHttp2(stand);
  cleanups.push(() => session.destroy());
  expect((await ask(session, { ':path': '/b' })).body).toBe('/b over https');
});

it('a handshake is counted only while it is under way', async () => {
  const { stand } = await start();
  const silent = net.connect(stand.port.address.port, '127.0.0.1');
  silent.on('error', () => {});
  await eventually(() => expect(stand.port.handshakes).toBe(1));
  await secured(dialTls(stand));
  await eventually(() => expect(stand.http.ingress.connections).toBe(1));
  expect(stand.port.handshakes).toBe(1);
  silent.destroy();
  await eventually(() => expect(stand.port.handshakes).toBe(0));
});

it('WebSockets over HTTP/1.1 carry large and fragmented messages', async () => {
  const { stand, service } = await start();
  new WebSocketServer({ server: service }).on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  const { port } = stand.port.address;
  const visitor = new WebSocket(`wss://127.0.0.1:${port}/echo`, {
    rejectUnauthorized: false,
    headers: { host: 'web.localhost' },
  });
  cleanups.push(() => visitor.terminate());
  await once(visitor, 'open');
  const large = Buffer.alloc(3_000_000, 'large');
  visitor.send(large.subarray(0, 1_000_000), { fin: false, binary: true });
  visitor.send(large.subarray(1_000_000), { fin: true, binary: true });
  const [echo] = await once(visitor, 'message');
  expect(large.equals(echo as Buffer)).toBe(true);
  visitor.close(1000, 'bye');
  const [code] = await once(visitor, 'close');
  expect(code).toBe(1000);
});

it('new connections get a renewed certificate, and existing connections continue', async () => {
  const { stand } = await start();
  const before = visitHttp2(stand);
  cleanups.push(() => before.destroy());
  expect((await ask(before, { ':path': '/1' })).status).toBe(200);
  const { cert, key } = renewedCertificate();
  stand.port.certificates.setForAll(pairOf({ cert, key }));
  // Node.js verifies the certificate, including the wildcard.
  const renewed = { ca: cert, servername: 'web.edge.test', checkServerIdentity };
  const after = await secured(dialTls(stand, { ...renewed, minVersion: 'TLSv1.2' }));
  expect(await read(after, GET)).toContain('/a over https');
  const old = dialTls(stand, { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
  await expect(once(old, 'secureConnect')).rejects.toThrow();
  expect((await ask(before, { ':path': '/2' })).body).toBe('/2 over https');
});

it('visitors are redirected to https only for hosts that a certificate covers', async () => {
  const { stand } = await start();
  const certificates = emptyStore();
  const published = { public_http_port: 0, public_https_port: 0 };
  const server = { host: '127.0.0.1', http_port: 0, https_port: 0, plain_http: 'redirect', ...published } as const;
  const { ingress, gate } = stand.http;
  const listeners = new HttpListeners({
    server,
    ingress,
    gate,
    certificates,
    clock: systemClock,
    passthrough: null,
    challenges: null,
  });
  cleanups.push(() => listeners.stop());
  await listeners.start({ isSecure: true });
  const plain = listeners.http.port;
  const secure = listeners.https?.port;
  const toldOf = (host: string) => [listeners.redirectPort(host), listeners.publicHttp(host)];
  expect(toldOf('shop.test')).toEqual([null, { scheme: 'http', port: plain }]);
  expect(certificates.set(['shop.test'], pairOf(testCertificate()))).toBeNull();
  for (const host of ['shop.test', 'shop.test.']) {
    expect(toldOf(host)).toEqual([secure, { scheme: 'https', port: secure }]);
  }
  expect(toldOf('web.test')).toEqual([null, { scheme: 'http', port: plain }]);
  // The certificate is set for all names, like the files of [tls].
  certificates.setForAll(pairOf(testCertificate()));
  expect(toldOf('web.test')).toEqual([secure, { scheme: 'https', port: secure }]);
});

it('public URLs and redirects have the published ports instead of the listening ports', async () => {
  const { stand } = await start();
  const certificates = emptyStore();
  const published = { public_http_port: 80, public_https_port: 443 };
  const { ingress, gate } = stand.http;
  const listeners = new HttpListeners({
    server: { host: '127.0.0.1', http_port: 0, https_port: 0, plain_http: 'redirect', ...published },
    ingress,
    gate,
    certificates,
    clock: systemClock,
    passthrough: null,
    challenges: null,
  });
  cleanups.push(() => listeners.stop());
  await listeners.start({ isSecure: false });
  expect(listeners.publicPorts).toEqual({ http: 80, https: null });
  listeners.stop();
  await listeners.start({ isSecure: true });
  expect(listeners.publicPorts).toEqual({ http: 80, https: 443 });
  expect(listeners.https?.port).not.toBe(443);
  expect(listeners.publicHttp('shop.test')).toEqual({ scheme: 'http', port: 80 });
  certificates.setForAll(pairOf(testCertificate()));
  expect([listeners.publicHttp('shop.test'), listeners.redirectPort('shop.test')]).toEqual([
    { scheme: 'https', port: 443 },
    443,
  ]);
});
