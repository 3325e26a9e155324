// `[server] trusted_proxies`: the proxies that may name the visitor, for the headers to the service and for limits.
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { openGate } from '../gate.fixture.ts';
import { type IngressOptions, talk } from './http.fixture.ts';
import { ask, type HttpsStand, startHttpsStand, visitHttp2 } from './https.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const TRUSTED = { trustedProxies: ['127.0.0.0/8', '10.0.0.2'] };
const TOLD = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'] as const;

/** Starts a service that responds with the forwarded headers of the request. Requests to `/hold` wait for letGo(). */
const start = async (options: Partial<IngressOptions>): Promise<{ stand: HttpsStand; letGo: () => void }> => {
  const held: http.ServerResponse[] = [];
  const server = http.createServer((request, response) => {
    if (request.url === '/hold') held.push(response);
    else response.end(JSON.stringify(TOLD.map((name) => request.headers[name])));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stand = await startHttpsStand((server.address() as AddressInfo).port, options);
  cleanups.push(
    () => server.close(),
    () => server.closeAllConnections(),
    () => stand.stop(),
  );
  return { stand, letGo: () => held.splice(0).forEach((response) => response.end('gone')) };
};

const get = (path: string, ...lines: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: web.localhost', ...lines, '', ''].join('\r\n');

const bodyOf = (answer: string): unknown => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')));
const CLAIM = ['X-Forwarded-For: 6.6.6.6, 203.0.113.9, 10.0.0.2', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: evil'];

describe('forwarded headers to the service', () => {
  it('have the address and scheme that a trusted proxy names, and the requested host', async () => {
    const { stand } = await start(TRUSTED);
    const answer = await talk(stand.http.port, get('/', ...CLAIM, 'Connection: close'));
    expect(bodyOf(answer)).toEqual(['6.6.6.6, 203.0.113.9', 'https', 'web.localhost']);
    const without = await talk(stand.http.port, get('/', 'Connection: close'));
    expect(bodyOf(without)).toEqual(['127.0.0.1', 'http', 'web.localhost']);
  });

  it('have the address and scheme that a trusted proxy names, over HTTP/2', async () => {
    const { stand } = await start(TRUSTED);
    const session = visitHttp2(stand);
    cleanups.push(() => session.destroy());
    const claim = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'http' };
    const host = 'web.localhost:443';
    expect(JSON.parse((await ask(session, { ':path': '/', ...claim })).body)).toEqual(['203.0.113.9', 'http', host]);
    expect(JSON.parse((await ask(session, { ':path': '/' })).body)).toEqual(['127.0.0.1', 'https', host]);
  });

  it('have the real scheme and host for an untrusted sender, and its address at the end of the list', async () => {
    const { stand } = await start({ trustedProxies: ['10.0.0.0/8'] });
    const answer = await talk(stand.http.port, get('/', ...CLAIM, 'Connection: close'));
    expect(bodyOf(answer)).toEqual(['6.6.6.6, 203.0.113.9, 10.0.0.2, 127.0.0.1', 'http', 'web.localhost']);
  });
});

describe('connections_per_address behind a proxy', () => {
  it('counts requests under way for the visitor that the proxy names', async () => {
    const gate = openGate({ perNetwork: 1, ...TRUSTED });
    const { stand, letGo } = await start({ ...TRUSTED, gate });
    const { port } = stand.http;
    const statusFor = async (address: string): Promise<string> =>
      (await talk(port, get('/', `X-Forwarded-For: ${address}`, 'Connection: close'))).slice(9, 12);
    const first = talk(port, get('/hold', 'X-Forwarded-For: 203.0.113.1', 'Connection: close'));
    await eventually(() => expect(gate.admission.ofNetwork('203.0.113.1')).toBe(1));
    expect([await statusFor('203.0.113.1'), await statusFor('203.0.113.2')]).toEqual(['429', '200']);
    letGo();
    expect(await first).toContain('200 OK');
    await eventually(async () => expect(await statusFor('203.0.113.1')).toBe('200'));
    await eventually(() =>
      expect([gate.admission.used.visitors, gate.admission.ofNetwork('203.0.113.1')]).toEqual([0, 0]),
    );
  });

  it('does not count an idle connection of the proxy for a visitor, even after a 429', async () => {
    const gate = openGate({ perNetwork: 1, ...TRUSTED });
    gate.admission.requestBegins('203.0.113.3');
    const { stand } = await start({ ...TRUSTED, gate });
    const addresses = ['203.0.113.1', '203.0.113.2', '203.0.113.3', '203.0.113.1'];
    const requests = addresses.map((address) => get('/', `X-Forwarded-For: ${address}`));
    const answer = await talk(stand.http.port, `${requests.join('')}${get('/', 'Connection: close')}`);
    expect(answer.match(/HTTP\/1\.1 \d+/g)?.map((line) => line.slice(9))).toEqual(['200', '200', '429', '200', '200']);
    await eventually(() =>
      expect([gate.admission.used.visitors, gate.admission.ofNetwork('203.0.113.1')]).toEqual([0, 0]),
    );
  });

  it('no longer counts an HTTP/2 request when its visitor leaves', async () => {
    const gate = openGate({ perNetwork: 1, ...TRUSTED });
    const { stand } = await start({ ...TRUSTED, gate });
    const session = visitHttp2(stand);
    cleanups.push(() => session.destroy());
    const ofFirst = { 'x-forwarded-for': '203.0.113.1' };
    const held = session.request({ ':path': '/hold', ...ofFirst });
    held.on('error', () => {});
    await eventually(() => expect(gate.admission.ofNetwork('203.0.113.1')).toBe(1));
    expect((await ask(session, { ':path': '/', ...ofFirst })).status).toBe(429);
    held.close();
    await eventually(async () => expect((await ask(session, { ':path': '/', ...ofFirst })).status).toBe(200));
  });
});

describe('the redirect to https', () => {
  const redirectPort = (): number => 443;

  it('is skipped for a visitor that came over https according to a trusted proxy', async () => {
    const { stand } = await start({ ...TRUSTED, redirectPort });
    const { port } = stand.http;
    expect(await talk(port, get('/', 'X-Forwarded-Proto: https', 'Connection: close'))).toMatch(/^HTTP\/1\.1 200/);
    expect(await talk(port, get('/', 'X-Forwarded-Proto: http', 'Connection: close'))).toMatch(/^HTTP\/1\.1 308/);
  });

  it('applies despite an untrusted X-Forwarded-Proto, but not without a host', async () => {
    const { stand } = await start({ redirectPort });
    const { port } = stand.http;
    expect(await talk(port, get('/', 'X-Forwarded-Proto: https', 'Connection: close'))).toMatch(/^HTTP\/1\.1 308/);
    expect(await talk(port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 404/);
  });

  it.each([
    ['localhost', 308, 404],
    ['LOCALHOST:80', 308, 404],
    ['localhost.', 308, 404],
    ['web.localhost', 308, 200],
    ['nobody.localhost', 308, 404],
    ['deep.web.localhost', 308, 404],
    ['evil.example', 404, 404],
    ['weblocalhost', 404, 404],
    ['localhost.evil.example', 404, 404],
    ['127.0.0.1', 404, 404],
    ['[::1]', 404, 404],
  ])('for the host %s: http gets %i, https gets %i', async (host, plain, secure) => {
    const { stand } = await start({ redirectPort });
    const request = `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    const answer = await talk(stand.http.port, request);
    expect(Number(answer.slice(9, 12))).toBe(plain);
    if (plain === 404) expect(answer).toMatch(/x-tunnel-error: TUNNEL_NOT_FOUND/i);
    const session = visitHttp2(stand);
    cleanups.push(() => session.destroy());
    expect((await ask(session, { ':path': '/', ':authority': host })).status).toBe(secure);
  });
});
