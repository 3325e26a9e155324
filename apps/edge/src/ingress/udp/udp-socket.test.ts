import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { eventually, freePort } from '@tunnel/testkit';
import { afterEach, expect, it, vi } from 'vitest';
import { HOST } from './udp.fixture.ts';
import { SendBlocks, UDP_RECEIVE_BUFFER_BYTES, UDP_SEND_QUEUE_BYTES, UdpSocket } from './udp-socket.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

const start = async (host = HOST, blocks = new SendBlocks()): Promise<UdpSocket> => {
  const bound = await UdpSocket.bind(host, await freePort(), blocks);
  bound.socket.on('error', () => {});
  cleanups.push(() => bound.close());
  return bound;
};

const receiver = async (): Promise<{ socket: Socket; heard: Buffer[]; port: number }> => {
  const socket = createSocket('udp4').bind(0, HOST);
  const heard: Buffer[] = [];
  socket.on('message', (bytes) => void heard.push(bytes));
  await once(socket, 'listening');
  cleanups.push(() => socket.close());
  return { socket, heard, port: socket.address().port };
};

it('a UDP socket requests a large receive buffer and reports the size it was given', async () => {
  const { receiveBuffer } = await start();
  expect(receiveBuffer.askedBytes).toBe(UDP_RECEIVE_BUFFER_BYTES);
  expect(receiveBuffer.givenBytes).toBeGreaterThan(0);
});

it('a UDP socket can be bound to a host name', async () => {
  const { socket } = await start('localhost');
  expect(['127.0.0.1', '::1']).toContain(socket.address().address);
});

it('a sent datagram has the bytes from the moment of sending, even if the memory changes later', async () => {
  const bound = await start();
  const { heard, port } = await receiver();
  const bytes = Buffer.alloc(1000);
  for (let n = 0; n < 50; n += 1) {
    bytes.fill(n);
    expect(bound.send(bytes, 100, 900, port, HOST)).toBe(true);
  }
  bytes.fill(255);
  await eventually(() => expect(heard).toHaveLength(50));
  for (const [n, one] of heard.entries()) expect(one.equals(Buffer.alloc(800, n))).toBe(true);
});

interface Handle {
  /** Returns 0 for a queued datagram. */
  send(request: unknown, list: readonly Buffer[]): number;
}
const QUEUED = 0;

/** The handle inside a socket of node:dgram, which sends without the checks of the public method. */
const handleOf = (socket: Socket): Handle => {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'state symbol');
  return (socket as unknown as Record<symbol, { readonly handle: Handle }>)[symbol as symbol]?.handle as Handle;
};

it('datagrams in the send queue are never overwritten, even by another port, and the queue is limited', async () => {
  const blocks = new SendBlocks();
  const behind = await start(HOST, blocks);
  const other = await start(HOST, blocks);
  const { port } = await receiver();
  const given: Buffer[] = [];
  const queue = { bytes: 0 };
  // Simulates a kernel with a full send buffer: datagrams wait, and the kernel reads their bytes later.
  vi.spyOn(handleOf(behind.socket), 'send').mockImplementation((_request, [bytes]) => {
    given.push(bytes as Buffer);
    queue.bytes += bytes?.length ?? 0;
    return QUEUED;
  });
  vi.spyOn(behind.socket, 'getSendQueueSize').mockImplementation(() => queue.bytes);
  const size = 10_000;
  const most = (2 * UDP_SEND_QUEUE_BYTES) / size;
  for (let n = 0; n < most && behind.send(Buffer.alloc(size, n), 0, size, port, HOST); n += 1) {
    other.send(Buffer.alloc(size, 255), 0, size, port, HOST);
  }
  expect(given).toHaveLength(Math.floor(UDP_SEND_QUEUE_BYTES / size) + 1);
  for (const [n, bytes] of given.entries()) expect(bytes.equals(Buffer.alloc(size, n))).toBe(true);
});

it('a UDP socket closes once, and its port is then free', async () => {
  const bound = await start();
  const { port } = bound.socket.address();
  await Promise.all([bound.close(), bound.close()]);
  const next = await UdpSocket.bind(HOST, port, new SendBlocks());
  await next.close();
});
