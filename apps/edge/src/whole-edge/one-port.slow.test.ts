// Clients on the ports of visitors: all ways to connect, the same control plane behind each, and the drain.
import { once } from 'node:events';
import { connect } from 'node:net';
import { allowStaticReads } from '@tunnel/mux';
import { deterministicBytes, eventually, hashOf } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { askUpgrade, echoMux, openCarrier, type UpgradeRequest } from '../control/raw-carrier.fixture.ts';
import { RawClient } from '../control/raw-client.fixture.ts';
import { talk } from '../ingress/http/http.fixture.ts';
import { type OnePortStage, openOnePort } from './one-port.fixture.ts';

const TLS13 = { minVersion: 'TLSv1.3', maxVersion: 'TLSv1.3' } as const;

let stage: OnePortStage;
const start = async (server: object = {}, tls = true): Promise<OnePortStage> => {
  stage = await openOnePort({ server, tls });
  return stage;
};
afterEach(async () => {
  allowStaticReads(true);
  await stage.close();
});

/** Connects a client with its carriers over a single port. The client publishes a TCP tunnel with an echoing local service. */
const publishEcho = async (port: number, scheme: 'ws' | 'wss', alpn?: string) => {
  const client = await RawClient.connect(port, { scheme, ...(alpn === undefined ? {} : { alpn: [alpn] }) });
  client.auth('admin');
  const welcome = await client.next('AuthOk');
  const mux = echoMux();
  const tls: UpgradeRequest = scheme === 'ws' ? {} : { tls: alpn === undefined ? TLS13 : { ...TLS13, alpn } };
  for (const token of welcome.carriers.tokens) mux.addCarrier(await openCarrier(port, token, tls));
  const tunnel = await client.registered();
  return { client, mux, welcome, port: tunnel.assigned_port as number };
};

/** Sends bytes, ends the sending side, and returns the hash of all bytes that come back. */
const echoed = async (port: number, bytes: Buffer): Promise<string> => {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  socket.end(bytes);
  const pieces: Buffer[] = [];
  for await (const piece of socket) pieces.push(piece as Buffer);
  return hashOf(Buffer.concat(pieces));
};

const READ_WAYS = [true, false];

describe.each(READ_WAYS)('a client and its carriers (static reads: %s)', (isStatic) => {
  beforeEach(() => allowStaticReads(isStatic));

  it.each([
    ['https_port by ALPN', 'https', 'wss', 'tunnel/1'],
    ['https_port by path', 'https', 'wss', undefined],
    ['https_port by path, after ALPN chose HTTP/1.1', 'https', 'wss', 'http/1.1'],
    ['http_port by path', 'http', 'ws', undefined],
  ] as const)('connect by %s, and bytes pass unchanged', async (_way, which, scheme, alpn) => {
    const ports = await start({ plain_http: 'proxy' });
    const { client, mux, port } = await publishEcho(ports[which], scheme, alpn);
    expect(stage.edge.counters).toMatchObject({ sessions: 1, carriers: 4, connections: 0 });
    const bytes = deterministicBytes(3 << 20, 11);
    expect(await echoed(port, bytes)).toBe(hashOf(bytes));
    client.send({ type: 'Ping', id: 5 });
    expect((await client.next('Pong')).id).toBe(5);
    mux.close({ code: 'cancelled', text: 'over' });
    client.ws.close();
    await eventually(() => expect(stage.edge.counters).toMatchObject({ sessions: 0, carriers: 0 }));
  });
});

it("an edge without a certificate accepts clients on its http port, even after a visitor's request", async () => {
  const { http } = await start({}, false);
  const socket = await stage.dial(http);
  socket.write('GET / HTTP/1.1\r\nHost: nobody.edge.test\r\n\r\n');
  expect(String((await once(socket, 'data'))[0])).toContain('TUNNEL_NOT_FOUND');
  // The request comes in two pieces, so that the edge must gather the head, and names the host of the domain.
  socket.write('GET /_carrier HTTP/1.1\r\nHost: EDGE.test');
  socket.write(`:${http}\r\nConnection: Upgrade\r\nUpgrade: tunnel-carrier/1\r\nAuthorization: Bearer no\r\n\r\n`);
  expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 401 /);
  const { client } = await publishEcho(http, 'ws');
  client.ws.terminate();
  // The absolute form for proxies: the host comes from the target.
  const whole = answerTo(http, 'HTTP://Edge.test:80/_carrier?x HTTP/1.1\r\nHost: web.edge.test');
  expect(await whole).toMatch(/^HTTP\/1\.1 401 /);
});

/** Sends a request over a connection that stays open, and returns the response head. */
const answerTo = (port: number, request: string): Promise<string> =>
  talk(port, `GET ${request}\r\nConnection: Upgrade\r\nUpgrade: tunnel-carrier/1\r\n\r\n`, '\r\n\r\n');

describe('a visitor on the public ports', () => {
  it('that requests client paths on the host of a tunnel reaches the tunnel', async () => {
    const { http, https } = await start({ plain_http: 'proxy' });
    const client = await RawClient.connect(https, { scheme: 'wss', alpn: ['tunnel/1'] });
    client.auth('admin');
    await client.next('AuthOk');
    await client.registered({ protocol: 'http', subdomain: 'web' });
    for (const path of ['/_control', '/_carrier', '/_speed']) {
      expect(await answerTo(http, `${path} HTTP/1.1\r\nHost: x.edge.test`)).toContain('TUNNEL_NOT_FOUND');
    }
    // The client of the tunnel has no carrier, so that the request cannot be served.
    const asked = answerTo(http, '/_control HTTP/1.1\r\nHost: web.edge.test');
    expect(await asked).toMatch(/x-tunnel-error: (TUNNEL_AWAY|LOCAL_|CLIENT_|UPSTREAM)/);
    client.ws.terminate();
  });

  it.each(['/', '/_controls', '/_control/', '/%5fcontrol'])(
    'finds no client path at %s of the domain',
    async (path) => {
      const { http } = await start({ plain_http: 'proxy' });
      for (const host of ['edge.test', '127.0.0.1', 'other.test']) {
        const answer = talk(http, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
        expect(await answer).toContain('TUNNEL_NOT_FOUND');
      }
    },
  );

  it('gets tunnel/1 before h2 when it offers both, and otherwise its usual protocol', async () => {
    const { https } = await start();
    for (const [offer, chosen] of [
      [['tunnel/1', 'h2'], 'tunnel/1'],
      [['h2', 'http/1.1', 'tunnel/1'], 'tunnel/1'],
      [['http/1.1', 'h2'], 'h2'],
      [['http/1.1'], 'http/1.1'],
    ] as const) {
      const socket = await stage.dialTls(https, offer);
      expect(socket.alpnProtocol).toBe(chosen);
      socket.destroy();
    }
  });
});

describe('the public ports accept no clients', () => {
  it('when control_on_public is off', async () => {
    const { http, https, control } = await start({ plain_http: 'proxy', control_on_public: false });
    for (const path of ['/_control', '/_carrier', '/_speed?bytes=1']) {
      expect(await answerTo(http, `${path} HTTP/1.1\r\nHost: edge.test`)).toContain('TUNNEL_NOT_FOUND');
    }
    await expect(RawClient.connect(https, { scheme: 'wss' })).rejects.toThrow('404');
    await expect(RawClient.connect(https, { scheme: 'wss', alpn: ['tunnel/1', 'http/1.1'] })).rejects.toThrow('404');
    await expect(stage.dialTls(https, ['tunnel/1'])).rejects.toThrow(/alert|disconnected/);
    expect((await askUpgrade(control, { tls: TLS13 })).status).toBe(401);
  });

  it('on plain HTTP if it redirects to https, whatever the host', async () => {
    const { http, https } = await start();
    expect(await answerTo(http, '/_carrier HTTP/1.1\r\nHost: edge.test')).toMatch(/^HTTP\/1\.1 308 /);
    expect(await answerTo(http, '/_carrier HTTP/1.1\r\nHost: 127.0.0.1')).toContain('TUNNEL_NOT_FOUND');
    expect((await askUpgrade(https, { tls: TLS13, host: '127.0.0.1' })).status).toBe(401);
  });
});

it('a drain notifies clients on the public ports, closes idle connections and waits for streams', async () => {
  const { https } = await start();
  const { client, port } = await publishEcho(https, 'wss', 'tunnel/1');
  const visitor = await stage.dial(port);
  visitor.write('hold');
  await once(visitor, 'data');
  const idle = await stage.dialTls(https, ['tunnel/1']);
  const stopped = stage.edge.stop({ drainMs: 5000 });
  await client.next('ShuttingDown');
  await once(idle, 'close');
  // The stream continues during the drain, and its end completes the drain.
  visitor.write('still');
  expect(String((await once(visitor, 'data'))[0])).toBe('still');
  visitor.end();
  await stopped;
  expect(await client.closed).toMatchObject({ code: 1001 });
});
