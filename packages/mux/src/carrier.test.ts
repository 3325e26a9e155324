import { eventually, FakeClock, rethrow, socketPair } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { createCarrier } from './carrier.ts';
import { MUX_LIMITS } from './limits.ts';

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

it('a peer that does not answer the end is left behind after a while, by the clock of the receiver', async () => {
  const { clock, socket, peer, closed } = await lingering();
  await clock.advance(MUX_LIMITS.CARRIER_LINGER_MS - 1);
  expect([closed, socket.destroyed]).toEqual([[], false]);
  await clock.advance(1);
  expect([closed, socket.destroyed]).toEqual([['closed'], true]);
  peer.destroy();
});

it('a peer that answers leaves no timer behind', async () => {
  const { clock, peer, closed } = await lingering();
  peer.on('error', () => {}).end();
  await eventually(() => expect(closed).toEqual(['closed by the peer']));
  expect(clock.pendingTimers).toBe(0);
  peer.destroy();
});

it('an end before the start closes at once', async () => {
  const [socket, peer] = await socketPair('plain');
  createCarrier(socket).end();
  expect(socket.destroyed).toBe(true);
  peer.destroy();
});
