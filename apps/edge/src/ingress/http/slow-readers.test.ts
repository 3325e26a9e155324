// A visitor that reads slowly gets every byte of an answer behind which the connection ends, whatever of it the kernel still holds when we let go.
import * as net from 'node:net';
import * as tls from 'node:tls';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../../limits.ts';
import { type HttpStand, startHttpStand } from './http.fixture.ts';
import { startHttpsPort } from './https.fixture.ts';

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

/** Length of what came, and how the connection ended. */
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
  ])('an answer to %s %j is whole for one that begins to read when we have let go', async (version, fields) => {
    const stand = await startStand();
    const socket = await connect(stand, scheme);
    cleanups.push(() => socket.destroy());
    socket.pause();
    socket.write(`GET / ${version}\r\nHost: web.edge.test\r\n${fields}\r\n`);
    await eventually(() => expect(stand.dials).toBe(1));
    // The kernel has taken all of it.
    await eventually(() => expect([stand.pair.edge.liveStreams, stand.ingress.queuedBytes]).toEqual([0, 0]));
    await eventually(async () => {
      await stand.clock.advance(EDGE_LIMITS.HTTP_LINGER_MS);
      expect(stand.ingress.connections).toBe(0);
    });
    const { bytes, how } = await readAll(socket);
    expect(how).toBe('end');
    expect(bytes).toBeGreaterThan(BODY.length);
  });
});
