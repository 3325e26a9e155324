// A visitor that reads slowly gets every byte of the last response on its connection, even if the kernel still holds data when the edge
// closes.
import { once } from 'node:events';
import * as net from 'node:net';
import * as tls from 'node:tls';
import { MUX_LIMITS } from '@tunnel/mux';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import { type HttpStand, startHttpStand, talk } from './http.fixture.ts';
import { startHttpsPort, startHttpsStand, visitHttp2 } from './https.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const BODY = Buffer.alloc(1024 * 1024, 'x');

const startStand = async (): Promise<HttpStand> => {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${BODY.length}\r\n\r\n`);
      socket.end(BODY);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stand = await startHttpStand((server.address() as net.AddressInfo).port);
  cleanups.push(
    () => server.close(),
    () => stand.stop(),
  );
  return stand;
};

const connect = async (stand: HttpStand, scheme: string): Promise<net.Socket> => {
  if (scheme === 'http') return net.connect({ port: stand.port, host: '127.0.0.1' });
  const port = await startHttpsPort(stand.ingress);
  cleanups.push(() => port.stop());
  return tls.connect({
    port: port.address.port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  });
};

/** Returns the number of bytes received, and how the connection ended. */
const readAll = (socket: net.Socket): Promise<{ bytes: number; how: string }> =>
  new Promise((resolve) => {
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => (bytes += chunk.length));
    socket.on('end', () => resolve({ bytes, how: 'end' }));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve({ bytes, how: error.code ?? '' }));
    socket.resume();
  });

describe.each(['http', 'https'])('over %s', (scheme) => {
  it.each([
    ['HTTP/1.0', ''],
    ['HTTP/1.1', 'Connection: close\r\n'],
  ])(
    'a response to %s %j arrives whole even if the visitor reads only after the edge has closed',
    async (version, fields) => {
      const stand = await startStand();
      const socket = await connect(stand, scheme);
      cleanups.push(() => socket.destroy());
      socket.pause();
      socket.write(`GET / ${version}\r\nHost: web.edge.test\r\n${fields}\r\n`);
      await eventually(() => expect(stand.dials).toBe(1));
      // The kernel has taken the whole response.
      await eventually(() => expect([stand.pair.edge.liveStreams, stand.ingress.queuedBytes]).toEqual([0, 0]));
      await eventually(async () => {
        await stand.clock.advance(EDGE_LIMITS.HTTP_LINGER_MS);
        expect(stand.ingress.connections).toBe(0);
      });
      const { bytes, how } = await readAll(socket);
      expect(how).toBe('end');
      expect(bytes).toBeGreaterThan(BODY.length);
    },
  );
});

it('a slow reader leaves the next visitor a service connection with credit for a response', async () => {
  const credit = MUX_LIMITS.STREAM_WINDOW_INITIAL_BYTES;
  const headOf = (length: number): string => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;
  // The response takes a stream's initial credit to the last byte. The next response has no credit until the edge grants more.
  const length = credit - headOf(credit).length;
  const answers = [headOf(length) + 'x'.repeat(length), `${headOf(2)}ok`];
  let askedBytes = 0;
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      askedBytes += chunk.length;
      socket.write(answers.shift() ?? '');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const stand = await startHttpsStand((server.address() as net.AddressInfo).port);
  const visitor = visitHttp2(stand);
  cleanups.push(
    () => server.close(),
    () => stand.stop(),
    () => visitor.destroy(),
  );
  await once(visitor.request({ ':path': '/' }), 'response');
  // The whole response has reached the edge, and the visitor has no more of it than its window.
  await eventually(() => expect(stand.http.tunnel.counters.bytes).toBe(askedBytes + credit));
  const request = 'GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: close\r\n\r\n';
  expect(await talk(stand.http.port, request)).toMatch(/ok$/);
  expect(stand.http.dials).toBe(1);
});
