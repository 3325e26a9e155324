// Header fields that claim the address of a visitor. The edge replaces some of these fields, and the others pass only from a trusted
// proxy. Tested over every protocol between visitor, edge and service.
import * as http from 'node:http';
import * as http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type IngressOptions, talk } from './http.fixture.ts';
import { ask, type HttpsStand, startHttpsStand, visitHttp2 } from './https.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Told = Record<string, string>;

const CLAIMS: Told = {
  'x-real-ip': '6.6.6.6',
  'x-forwarded-port': '8443',
  'true-client-ip': '6.6.6.6',
  'x-client-ip': '6.6.6.6',
  forwarded: 'for=6.6.6.6',
  x_real_ip: '6.6.6.6',
  x_forwarded_port: '1',
  true_client_ip: '6.6.6.6',
  x_client_ip: '6.6.6.6',
  x_forwarded_for: '6.6.6.6',
};
const OURS = ['x-real-ip', 'x-forwarded-port'];
const CLAIMED = ['true-client-ip', 'x-client-ip', 'forwarded', 'true_client_ip', 'x_client_ip'];

/** Picks the claimed fields from the headers that a service received. */
const pick = (headers: NodeJS.Dict<string | string[]>): Told =>
  Object.fromEntries(Object.keys(CLAIMS).flatMap((name) => (headers[name] ? [[name, String(headers[name])]] : [])));

const stop = (server: { close(): unknown }): void => void cleanups.push(() => server.close());
const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;

/**
 * Starts a service that responds with the claimed fields of the request. For an upgrade, the 101 response has the claimed fields in a
 * header.
 */
const startHttp1 = async (options: Partial<IngressOptions>): Promise<HttpsStand> => {
  const server = http.createServer((request, response) => response.end(JSON.stringify(pick(request.headers))));
  server.on('upgrade', (request, socket) => {
    const told = JSON.stringify(pick(request.headers));
    socket.on('error', () => {});
    socket.end(`HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Told: ${told}\r\n\r\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stop(server);
  const stand = await startHttpsStand(portOf(server), options);
  cleanups.push(() => stand.stop());
  return stand;
};

const startH2c = async (options: Partial<IngressOptions>): Promise<HttpsStand> => {
  const server = http2.createServer();
  server.on('stream', (stream, headers) => {
    stream.respond({ ':status': 200 });
    stream.end(JSON.stringify(pick(headers)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stop(server);
  const stand = await startHttpsStand(portOf(server), { ...options, http: { localProtocol: 'h2c' } });
  cleanups.push(() => stand.stop());
  return stand;
};

const overHttp1 = async (stand: HttpsStand, claims: Told): Promise<Told> => {
  const lines = Object.entries(claims).map(([name, value]) => `${name}: ${value}`);
  const request = ['GET / HTTP/1.1', 'Host: web.localhost', 'Connection: close', ...lines, '', ''].join('\r\n');
  const answer = await talk(stand.http.port, request);
  return JSON.parse(/\{.*\}/.exec(answer)?.[0] ?? '') as Told;
};

const overWebSocket = async (stand: HttpsStand, claims: Told): Promise<Told> => {
  const lines = Object.entries(claims).map(([name, value]) => `${name}: ${value}`);
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket'];
  const answer = await talk(
    stand.http.port,
    ['GET / HTTP/1.1', 'Host: web.localhost', ...upgrade, ...lines, '', ''].join('\r\n'),
  );
  expect(answer).toMatch(/^HTTP\/1\.1 101/);
  return JSON.parse(/x-told: (.*)/i.exec(answer)?.[1] ?? '') as Told;
};

const overHttp2 = async (stand: HttpsStand, claims: Told): Promise<Told> => {
  const session = visitHttp2(stand);
  cleanups.push(() => session.destroy());
  const { body } = await ask(session, { ':path': '/', ':authority': 'web.localhost', ...claims });
  return JSON.parse(body) as Told;
};

describe.each([
  ['HTTP/1.1 to HTTP/1.1', startHttp1, overHttp1, '80'],
  ['HTTP/1.1 to h2c', startH2c, overHttp1, '80'],
  ['HTTP/2 to HTTP/1.1', startHttp1, overHttp2, '443'],
  ['HTTP/2 to h2c', startH2c, overHttp2, '443'],
  ['a WebSocket', startHttp1, overWebSocket, '80'],
] as const)('%s', (_name, start, askOver, usualPort) => {
  it.each(Object.keys(CLAIMS))('the %s field of an untrusted visitor does not reach the service', async (name) => {
    const stand = await start({ trustedProxies: ['10.0.0.0/8'] });
    const claim = { [name]: CLAIMS[name] as string };
    expect(await askOver(stand, claim)).toEqual({ 'x-real-ip': '127.0.0.1', 'x-forwarded-port': usualPort });
  });

  it("a trusted proxy's fields reach the service, and the edge sets address and port accordingly", async () => {
    const stand = await start({ trustedProxies: ['127.0.0.0/8'] });
    const told = await askOver(stand, { ...CLAIMS, 'x-forwarded-for': '203.0.113.9' });
    expect(Object.keys(told).sort()).toEqual([...OURS, ...CLAIMED].sort());
    expect(told).toMatchObject({ 'x-real-ip': '203.0.113.9', 'x-forwarded-port': '8443', forwarded: 'for=6.6.6.6' });
  });
});
