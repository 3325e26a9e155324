// Connections above a limit: the visitor gets an error over every protocol and is disconnected, and idle connections make room.
import * as http from 'node:http';
import * as net from 'node:net';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { openGate } from '../gate.fixture.ts';
import { talk } from './http.fixture.ts';
import { ask, dialTls, type HttpsStand, startHttpsStand, visitHttp2 } from './https.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const start = async (limits: Parameters<typeof openGate>[0]): Promise<HttpsStand> => {
  const service = http.createServer((request, response) => {
    if (request.url !== '/hold') response.end('here');
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  const clock = new FakeClock();
  const gate = openGate({ ...limits, clock });
  const stand = await startHttpsStand((service.address() as net.AddressInfo).port, { gate, clock });
  cleanups.push(
    () => service.close(),
    () => service.closeAllConnections(),
    () => stand.stop(),
  );
  return stand;
};

const GET = 'GET / HTTP/1.1\r\nHost: web.localhost\r\n\r\n';

/** Opens a connection and sends no data. */
const occupy = async ({ http: { port, gate } }: HttpsStand, localAddress = '127.0.0.1'): Promise<net.Socket> => {
  const before = gate.admission.used.visitors;
  const socket = net.connect({ host: '127.0.0.1', port, localAddress }).on('error', () => {});
  cleanups.push(() => socket.destroy());
  await eventually(() => expect(gate.admission.used.visitors).toBe(before + 1));
  return socket.resume();
};

it('a silent connection counts for its address; the next connection gets 429 and is closed', async () => {
  const stand = await start({ perNetwork: 1 });
  await occupy(stand);
  const answer = await talk(stand.http.port, GET);
  expect(answer).toMatch(/^HTTP\/1\.1 429 .*x-tunnel-error: CONNECTIONS_PER_ADDRESS.*connection: close/is);
  expect(answer).toMatch(/retry-after: 1\r\n/i);
  expect([stand.http.ingress.connections, stand.http.gate.admission.used.visitors]).toEqual([1, 1]);
});

it('over TLS, a connection above the address limit gets 429, with HTTP/1.1 and HTTP/2', async () => {
  const stand = await start({ perNetwork: 1 });
  await occupy(stand);
  const socket = dialTls(stand);
  cleanups.push(() => socket.destroy());
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1');
  });
  socket.write(GET);
  await eventually(() => expect(answer).toMatch(/^HTTP\/1\.1 429 /));
  const session = visitHttp2(stand);
  cleanups.push(() => session.destroy());
  const refused = await ask(session, { ':path': '/' });
  expect([refused.status, refused.headers['x-tunnel-error'], refused.headers['retry-after']]).toEqual([
    429,
    'CONNECTIONS_PER_ADDRESS',
    '1',
  ]);
});

it('a full edge closes an idle connection of the address with the most, and serves the new visitor', async () => {
  const stand = await start({ visitors: 3 });
  const silent = await occupy(stand, '127.0.0.2');
  await occupy(stand, '127.0.0.2');
  await occupy(stand, '127.0.0.2');
  expect(await talk(stand.http.port, GET, 'here')).toMatch(/^HTTP\/1\.1 200 /);
  await eventually(() => expect(silent.destroyed).toBe(true));
});

it('a full edge without an idle connection answers 503', async () => {
  const stand = await start({ visitors: 1 });
  (await occupy(stand)).write('GET /hold HTTP/1.1\r\nHost: web.localhost\r\n\r\n');
  await eventually(() => expect(stand.http.tunnel.counters.openConnections).toBe(1));
  expect(await talk(stand.http.port, GET)).toMatch(/^HTTP\/1\.1 503 .*x-tunnel-error: CONNECTIONS_FULL/is);
});

it('a connection reports its phase and the event it waits for', async () => {
  const stand = await start({});
  const { admission } = stand.http.gate;
  const states = (): unknown[] => [...admission.tickets].map(({ held }) => held?.describe());
  const socket = await occupy(stand);
  expect(states()).toEqual([{ phase: 'head', waitsFor: 'a request from the visitor', tunnelId: null }]);
  socket.write('GET /hold HTTP/1.1\r\n');
  await eventually(() => expect(states()).toMatchObject([{ phase: 'head', waitsFor: 'the rest of a request head' }]));
  socket.write('Host: web.localhost\r\n\r\n');
  await eventually(() => expect(states()).toMatchObject([{ phase: 'answering', tunnelId: 'tun_1' }]));
  const session = visitHttp2(stand);
  cleanups.push(() => session.destroy());
  await ask(session, { ':path': '/' });
  expect(states()[1]).toEqual({ phase: 'http2 open', waitsFor: 'a request from the visitor', tunnelId: 'tun_1' });
});
