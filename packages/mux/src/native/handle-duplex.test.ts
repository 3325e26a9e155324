// Edge cases of a connection on a bare handle: calls after its end, a reset during a pending write, and an owner that throws.
import * as net from 'node:net';
import { deterministicBytes, eventually, rethrow } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import type { ByteReader } from '../bytes/byte-duplex.ts';
import { type AcceptedSocket, acceptingServer } from '../socket/accept-sockets.ts';
import { HandleDuplex } from './handle-duplex.ts';

const CUT = { code: 'cancelled', text: '' } as const;
const cleanups: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

/** Creates an accepted connection and a peer that reads nothing. */
const connected = async (): Promise<{ duplex: HandleDuplex; peer: net.Socket }> => {
  const accepted: AcceptedSocket[] = [];
  const take = (socket: AcceptedSocket): void => void accepted.push(socket);
  const server = acceptingServer({ keepAliveMs: 60_000, take, report: rethrow, where: 'test.connection' });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const peer = net.connect({ host: '127.0.0.1', port: (server.address() as net.AddressInfo).port });
  peer.on('error', () => {});
  peer.pause();
  cleanups.push(() => {
    server.close();
    peer.destroy();
    for (const socket of accepted) socket.destroy();
  });
  await eventually(() => expect([accepted.length, peer.connecting]).toEqual([1, false]));
  const duplex = accepted[0];
  if (!(duplex instanceof HandleDuplex)) throw new Error('the connection is not on a handle');
  return { duplex, peer };
};

const readerInto = (told: string[], onData: ByteReader['onData'] = () => true): ByteReader => ({
  onData,
  onDrain: () => void told.push('drain'),
  onEnd: () => void told.push('end'),
  onReset: ({ code }) => void told.push(code),
  abandon: (error) => void told.push((error as Error).message),
});

it('a destroyed handle has no addresses and ignores further ends, resets and writes', async () => {
  const { duplex, peer } = await connected();
  const told: string[] = [];
  duplex.heldBy({ onClosed: () => void told.push('closed'), onBecame: () => {} });
  duplex.destroy();
  expect([duplex.remoteAddress, duplex.localAddress, duplex.queuedBytes]).toEqual([undefined, undefined, 0]);
  duplex.end(() => told.push('flushed'));
  duplex.detach();
  duplex.reset(CUT);
  duplex.destroy();
  expect([duplex.write(Buffer.from('x'), 0, 1, false), duplex.release(), duplex.destroyed]).toEqual([true, null, true]);
  peer.resume();
  await eventually(() => expect(peer.readableEnded).toBe(true));
  expect(told).toEqual(['closed']);
});

it('a second end() on a handle changes nothing', async () => {
  const { duplex, peer } = await connected();
  let flushed = 0;
  duplex.end(() => (flushed += 1));
  duplex.end(() => (flushed += 100));
  peer.resume();
  await eventually(() => expect([peer.readableEnded, flushed]).toEqual([true, 1]));
});

it('a reset during a pending write without a reader is reported once, by the write', async () => {
  const { duplex, peer } = await connected();
  const told: string[] = [];
  // The reader stops after one byte, so the kernel reports a reset only through the write.
  duplex.read(readerInto(told, () => false));
  peer.write('x');
  await eventually(() => expect(duplex.bytesRead).toBe(1));
  const much = deterministicBytes(16 * 1024 * 1024, 3);
  expect(duplex.write(much, 0, much.length, true)).toBe(false);
  expect(duplex.queuedBytes).toBeGreaterThan(0);
  peer.resetAndDestroy();
  await eventually(() => expect(told).toEqual(['peer-reset']));
  expect(duplex.destroyed).toBe(true);
  expect(duplex.queuedBytes).toBe(0);
});

it('an end callback that throws destroys the connection, or abandons the reader if there is one', async () => {
  const fail = (): void => {
    throw new Error('raised on purpose');
  };
  const alone = await connected();
  alone.duplex.end(fail);
  await eventually(() => expect(alone.duplex.destroyed).toBe(true));
  const read = await connected();
  const told: string[] = [];
  read.duplex.read(readerInto(told));
  read.duplex.end(fail);
  await eventually(() => expect(told).toEqual(['raised on purpose']));
  read.duplex.reset(CUT);
});
