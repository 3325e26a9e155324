import { systemClock } from '@tunnel/runtime';
import { carrierPair, eventually, FakeClock, rethrow, socketPair } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { MUX_LIMITS } from '../limits.ts';
import { createCarrier } from './carrier.ts';

const lingering = async () => {
  const [socket, peer] = await socketPair('plain');
  const clock = new FakeClock();
  const carrier = createCarrier(socket);
  const closed: string[] = [];
  const onClosed = (reason: string): void => void closed.push(reason);
  carrier.start({ onBytes: () => false, onReady: () => {}, onClosed, report: rethrow, clock });
  carrier.end();
  return { clock, socket, peer, closed };
};

it('an ended carrier is closed after CARRIER_LINGER_MS when the peer does not close', async () => {
  const { clock, socket, peer, closed } = await lingering();
  await clock.advance(MUX_LIMITS.CARRIER_LINGER_MS - 1);
  expect([closed, socket.destroyed]).toEqual([[], false]);
  await clock.advance(1);
  expect([closed, socket.destroyed]).toEqual([['closed'], true]);
  peer.destroy();
});

it('an ended carrier leaves no timer behind when the peer closes', async () => {
  const { clock, peer, closed } = await lingering();
  peer.on('error', () => {}).end();
  await eventually(() => expect(closed).toEqual(['closed by the peer']));
  expect(clock.pendingTimers).toBe(0);
  peer.destroy();
});

it('ending a carrier before start() closes the connection at once', async () => {
  const [socket, peer] = await socketPair('plain');
  createCarrier(socket).end();
  expect(socket.destroyed).toBe(true);
  peer.destroy();
});

/** More bytes than the kernel takes at once: the rest stays queued until the peer reads. */
const LARGE = Buffer.alloc(8 * 1024 * 1024, 1);
const SMALL = Buffer.alloc(1000, 2);

it.each(['plain', 'tls'] as const)('ending a carrier during a write sends all queued bytes first, %s', async (kind) => {
  const [receiving, sending] = await carrierPair(kind);
  const closed: string[] = [];
  const common = { onReady: () => {}, onClosed: (reason: string) => void closed.push(reason), report: rethrow };
  sending.start({ ...common, onBytes: () => false, clock: systemClock });
  sending.send(LARGE);
  await eventually(() => expect(sending.bytesSent).toBeGreaterThan(0));
  sending.send(SMALL);
  expect(sending.queuedBytes).toBeGreaterThan(SMALL.length);
  sending.end();
  // A frame sent after end(), such as a late PONG, is dropped without an error.
  sending.send(SMALL);
  let got = 0;
  let last = 0;
  const onBytes = (bytes: Buffer, start: number, end: number): boolean => {
    got += end - start;
    last = bytes[end - 1] as number;
    return false;
  };
  receiving.start({ ...common, onBytes, clock: systemClock });
  await eventually(() => expect(closed).toEqual(['closed by the peer', 'closed by the peer']));
  expect([got, last]).toEqual([LARGE.length + SMALL.length, 2]);
});

it('an ended carrier stays open while a slow peer still takes queued bytes', async () => {
  const [socket, peer] = await socketPair('plain');
  const clock = new FakeClock();
  const carrier = createCarrier(socket);
  const closed = [] as string[];
  const onClosed = (reason: string): void => void closed.push(reason);
  carrier.start({ onBytes: () => false, onReady: () => {}, onClosed, report: rethrow, clock });
  carrier.send(LARGE);
  carrier.end();
  const waiting = carrier.queuedBytes;
  expect(waiting).toBeGreaterThan(0);
  peer.on('data', () => carrier.queuedBytes < waiting && peer.pause()).resume();
  await eventually(() => expect(carrier.queuedBytes).toBeLessThan(waiting));
  await clock.advance(MUX_LIMITS.CARRIER_LINGER_MS);
  expect(closed).toEqual([]);
  await eventually(() => expect(peer.isPaused()).toBe(true));
  await clock.advance(2 * MUX_LIMITS.CARRIER_LINGER_MS);
  expect(closed).toEqual(['closed']);
  peer.destroy();
});
