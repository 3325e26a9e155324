// Malicious or too many connections on ports that visitors and clients share: neither kind takes the places of the other.
import { type EventEmitter, once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { Agent, request as secureRequest } from 'node:https';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { askUpgrade } from '../control/raw-carrier.fixture.ts';
import { RawClient } from '../control/raw-client.fixture.ts';
import { talk } from '../ingress/http/http.fixture.ts';
import { type OnePortStage, openOnePort } from './one-port.fixture.ts';

let stage: OnePortStage;
afterEach(() => stage.close());

const ALPN = ['tunnel/1', 'http/1.1'];
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: tunnel-carrier/1\r\n';

const enter = async (options: ConstructorParameters<typeof RawClient>[1] = {}): Promise<RawClient> => {
  const client = await RawClient.connect(stage.https, { scheme: 'wss', alpn: ALPN, ...options });
  client.auth('admin');
  await client.next('AuthOk');
  return client;
};

/** Returns the number of open connections of a share, from the metrics. */
const held = async (share: 'visitors' | 'control'): Promise<number> => {
  const text = await (await fetch(`http://127.0.0.1:${stage.metrics}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith('tunnel_connections_open') && one.includes(`"${share}"`));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
};

/** Waits for the close of a connection, for any reason. */
const closeOf = (one: EventEmitter): Promise<void> => new Promise((resolve) => one.once('close', () => resolve()));

const answerOf = async (socket: Socket): Promise<string> => String((await once(socket, 'data'))[0]);

describe('strangers on the public ports', () => {
  it('that negotiate tunnel/1 and send no HTTP are closed, and a client can still enter', async () => {
    stage = await openOnePort();
    for (const garbage of [
      Buffer.alloc(100_000, 0x16),
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      Buffer.alloc(1),
    ]) {
      const socket = await stage.dialTls(stage.https, ALPN);
      socket.resume().end(garbage);
      await closeOf(socket);
    }
    await enter();
    await eventually(async () => expect([await held('visitors'), await held('control')]).toEqual([0, 1]));
  });

  it('that stop in the middle of a handshake or a head do not keep clients out', async () => {
    stage = await openOnePort({ server: { plain_http: 'proxy' } });
    for (let n = 0; n < 50; n += 1) (await stage.dial(stage.https)).write(Buffer.from([0x16, 3, 1, 2, 0, 1]));
    for (let n = 0; n < 50; n += 1) (await stage.dial(stage.http)).write('GET /_control HTTP/1.1\r\nHost: edge.te');
    for (let n = 0; n < 20; n += 1) (await stage.dialTls(stage.https, ALPN)).write('GET /_control HTTP/1.1\r\nHo');
    const client = await enter();
    await client.settle();
    // Connections with tunnel/1 count as clients. The others count as visitors, because the edge does not know their kind yet.
    await eventually(async () => expect([await held('visitors'), await held('control')]).toEqual([100, 21]));
  });

  it.each([
    ['GET /_control HTTP/1.1\r\nHost: edge.test\r\n\r\n', 426],
    ['POST /_control HTTP/1.1\r\nHost: edge.test\r\nContent-Length: 3\r\n\r\nabc', 426],
    [`POST /_carrier HTTP/1.1\r\nHost: edge.test\r\n${UPGRADE}\r\n`, 400],
    ['GET /_control HTTP/1.1\r\nHost: edge.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n', 426],
    ['GET /_control HTTP/1.1\r\nHost: edge.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n', 400],
    [`GET /_carrier HTTP/1.1\r\nHost: edge.test\r\n${UPGRADE}Authorization: Bearer guess\r\n\r\n`, 401],
    ['GET /_carrier HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n', 426],
    ['GET /_speed?bytes=10 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n', 401],
    ['GET http://edge.test/_control HTTP/1.1\r\nHost: edge.test\r\n\r\n', 426],
  ])('that send an invalid client request get an error status: %j', async (request, status) => {
    stage = await openOnePort({ server: { plain_http: 'proxy' } });
    expect(await talk(stage.http, request)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await eventually(async () => expect([await held('visitors'), await held('control')]).toEqual([0, 0]));
  });

  it('get at most one response to a head that is too long or to two requests in one piece', async () => {
    stage = await openOnePort({ server: { plain_http: 'proxy' } });
    const long = `GET /_control HTTP/1.1\r\nHost: edge.test\r\nX: ${'x'.repeat(9000)}\r\n\r\n`;
    expect(await talk(stage.http, long).catch(() => '')).not.toContain('101');
    const first = 'GET /_control HTTP/1.1\r\nHost: edge.test\r\n\r\n';
    const two = await talk(stage.http, `${first}GET / HTTP/1.1\r\nHost: nobody.edge.test\r\n\r\n`);
    expect(two.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  });
});

describe('connection limits on the public ports', () => {
  it('of unauthenticated clients apply, and do not affect visitors', async () => {
    stage = await openOnePort();
    const idle = await Promise.all(Array.from({ length: 256 }, () => stage.dialTls(stage.https, ALPN)));
    await eventually(async () => expect([await held('visitors'), await held('control')]).toEqual([0, 256]));
    const refused = await askUpgrade(stage.https, {
      tls: { minVersion: 'TLSv1.3', maxVersion: 'TLSv1.3', alpn: 'tunnel/1' },
    });
    expect([refused.status, refused.text]).toEqual([429, expect.stringContaining('limit of 256')]);
    const visitor = await stage.dialTls(stage.https, ['http/1.1']);
    visitor.write('GET / HTTP/1.1\r\nHost: nobody.edge.test\r\n\r\n');
    expect(await answerOf(visitor)).toContain('TUNNEL_NOT_FOUND');
    for (const socket of idle) socket.destroy();
    await eventually(async () => expect(await held('control')).toBe(0));
    await enter();
  });

  it('of visitors by address reject visitors but no client, by ALPN and by path', async () => {
    stage = await openOnePort({ server: { plain_http: 'proxy' }, limits: { connections_per_address: 3 } });
    const visitors = await Promise.all(Array.from({ length: 3 }, () => stage.dial(stage.http)));
    await eventually(async () => expect(await held('visitors')).toBe(3));
    const over = 'GET / HTTP/1.1\r\nHost: nobody.edge.test\r\n\r\n';
    expect(await talk(stage.http, over)).toMatch(/^HTTP\/1\.1 429 /);
    const clients = [await enter(), await enter({ alpn: ['http/1.1'] })];
    const plain = await RawClient.connect(stage.http);
    for (const client of [...clients, plain]) await (client === plain ? client.ws.close() : client.settle());
    // Signed-in clients do not count for the address.
    for (const socket of visitors) socket.destroy();
    await eventually(async () => expect([await held('visitors'), await held('control')]).toEqual([0, 2]));
    expect(await talk(stage.http, over, 'TUNNEL_NOT_FOUND')).toContain('404');
  });

  it('count a client behind a trusted proxy for the address that the proxy names', async () => {
    stage = await openOnePort({ server: { plain_http: 'proxy', trusted_proxies: ['127.0.0.1'] } });
    const from = (address: string) => RawClient.connect(stage.http, { headers: { 'x-forwarded-for': address } });
    await Promise.all(Array.from({ length: 256 }, () => from('203.0.113.7')));
    await expect(from('203.0.113.7')).rejects.toThrow('429');
    const other = await from('203.0.113.8');
    other.auth('admin');
    await other.next('AuthOk');
    // Without a trusted proxy, the address that a client claims does not count.
    await stage.close();
    stage = await openOnePort({ server: { plain_http: 'proxy' } });
    await Promise.all(Array.from({ length: 256 }, (_, n) => from(`203.0.113.${n}`)));
    await expect(from('198.51.100.1')).rejects.toThrow('429');
  });
});

describe('/_speed on the public ports', () => {
  const headers = { authorization: 'Bearer admin', host: 'edge.test' };

  const down = (bytes: number, alpn: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const agent = new Agent({ ALPNProtocols: [alpn], rejectUnauthorized: false });
      const path = `/_speed?bytes=${bytes}`;
      secureRequest({ host: '127.0.0.1', port: stage.https, path, headers, agent }, (response) => {
        let received = 0;
        response.on('data', (chunk: Buffer) => {
          received += chunk.length;
        });
        response.on('end', () => resolve(received));
      })
        .on('error', reject)
        .end();
    });

  it('carries bytes in both directions, by ALPN and by path', async () => {
    stage = await openOnePort({ server: { plain_http: 'proxy' } });
    expect([await down(3_000_000, 'tunnel/1'), await down(3_000_000, 'http/1.1')]).toEqual([3_000_000, 3_000_000]);
    const body = 'x'.repeat(1_000_000);
    const request = `POST /_speed HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer admin\r\nContent-Length: ${body.length}\r\n\r\n`;
    expect(await talk(stage.http, request + body)).toContain('{"bytes":1000000}');
    expect(stage.edge.counters['connections']).toBe(0);
  });

  it('makes an HTTP/2 visitor retry with HTTP/1.1, and other requests on the connection continue', async () => {
    stage = await openOnePort();
    const session = connectHttp2('https://edge.test', {
      createConnection: () =>
        connectTls({ host: '127.0.0.1', port: stage.https, rejectUnauthorized: false, ALPNProtocols: ['h2'] }),
    }).on('error', () => {});
    const codes: number[] = [];
    for (const path of ['/_speed?bytes=1', '/_control']) {
      const stream = session.request({ ':path': path, authorization: 'Bearer admin' }).on('error', () => {});
      await closeOf(stream);
      codes.push(stream.rstCode);
    }
    expect(codes).toEqual([0xd, 0xd]);
    const other = session.request({ ':path': '/' });
    const [answer] = (await once(other, 'response')) as [Record<string, unknown>];
    expect([answer[':status'], answer['x-tunnel-error']]).toEqual([404, 'TUNNEL_NOT_FOUND']);
    session.destroy();
  });
});
