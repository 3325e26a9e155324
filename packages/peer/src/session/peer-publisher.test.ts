import type { ByteDuplex } from '@tunnel/mux';
import { FakeClock, rethrow } from '@tunnel/testkit';
import { beforeEach, describe, expect, it } from 'vitest';
import { encodeMessage } from '../direct/peer-messages.ts';
import type { SealedCarrier } from '../sealed/sealed-carrier.ts';
import { Harness, type PublisherSide, type SideOptions, type SubscriberSide } from './peer-pair.fixture.ts';
import { relayCarrier } from './relay-handshake.ts';

let harness: Harness;
let subscriber: SubscriberSide;
let publisher: PublisherSide;
let relay: { cut(): void };

/** Time for messages through the relay and a hole punch, but shorter than every retry pause. */
const SOON_MS = 1000;

const begin = async (one: SideOptions = {}, other: SideOptions = {}): Promise<void> => {
  subscriber = harness.subscriber(one);
  publisher = harness.publisher(other);
  relay = harness.join(subscriber, publisher);
  await harness.clock.advance(SOON_MS);
};

beforeEach(() => {
  harness = new Harness();
});

const echo = async (text: string): Promise<{ bytes: number | undefined }> => {
  const opened = subscriber.open();
  await harness.clock.advance(200);
  opened.write(text);
  await harness.clock.advance(200);
  return { bytes: opened.reader?.bytes };
};

describe('the identity of a peer', () => {
  it('is not proven with a wrong secret, which both sides report', async () => {
    await begin({ secret: 'not the secret of tests' });
    expect(subscriber.told).toEqual(['P2P_PROOF_FAILED']);
    expect(publisher.told).toEqual(['P2P_PROOF_FAILED peer_1']);
    expect(publisher.side.peers).toHaveLength(0);
  });

  it('with another kind of service is reported by the subscriber, and no peer joins', async () => {
    await begin({ service: 'udp' });
    expect(subscriber.told).toEqual(['P2P_SERVICE_MISMATCH']);
    expect(publisher.told).toEqual([]);
  });

  it('is refused for garbage that arrived before the first read', async () => {
    subscriber = harness.subscriber();
    publisher = harness.publisher();
    const one = harness.relay();
    const other = harness.relay();
    one.subscriber.write(Buffer.from([0, 3, 1, 2, 3]), 0, 5, false);
    other.publisher.write(Buffer.from([0, 0]), 0, 2, false);
    await harness.clock.advance(100);
    publisher.side.acceptRelay(one.publisher, 'peer_1');
    subscriber.side.attachRelay(other.subscriber);
    await harness.clock.advance(100);
    expect([subscriber.told, publisher.told]).toEqual([['P2P_PROOF_FAILED'], ['P2P_PROOF_FAILED peer_1']]);
  });

  it('cannot be faked by swapping the streams of two pairs', async () => {
    const others = { subscriber: harness.subscriber({ secret: 'the other secret' }) };
    subscriber = harness.subscriber();
    publisher = harness.publisher();
    const theirs = harness.publisher({ secret: 'the other secret' });
    harness.join(subscriber, theirs, 'peer_1');
    harness.join(others.subscriber, publisher, 'peer_2');
    await harness.clock.advance(SOON_MS);
    expect([subscriber.told, others.subscriber.told]).toEqual([['P2P_PROOF_FAILED'], ['P2P_PROOF_FAILED']]);
    expect([publisher.peers, theirs.peers]).toEqual([[], []]);
  });

  it('of a publisher can change: old streams are reset, and new streams use the new publisher', async () => {
    await begin();
    const opened = subscriber.open();
    await harness.clock.advance(200);
    relay.cut();
    const successor = harness.publisher();
    harness.join(subscriber, successor);
    await harness.clock.advance(2 * SOON_MS);
    expect(opened.reader?.reset).not.toBeNull();
    expect(publisher.told).toContain('stream reset');
    expect([subscriber.path, successor.path]).toEqual(['direct', 'direct']);
    expect((await echo('hello')).bytes).toBe(5);
    expect(successor.streams).toHaveLength(1);
  });

  it('differs for two subscribers, which get separate direct paths', async () => {
    await begin();
    const second = harness.subscriber();
    harness.join(second, publisher, 'peer_2');
    await harness.clock.advance(SOON_MS);
    expect(publisher.side.peers.map(({ peerId, path }) => `${peerId} ${path.path}`)).toEqual([
      'peer_1 direct',
      'peer_2 direct',
    ]);
  });
});

it('a second program with the same peer id replaces the first one', async () => {
  await begin();
  const successor = harness.subscriber();
  harness.join(successor, publisher, 'peer_1');
  await harness.clock.advance(SOON_MS);
  expect(publisher.told).toEqual(['joined peer_1', 'gone peer_1 left', 'joined peer_1']);
  expect(publisher.side.peers).toHaveLength(1);
  expect(subscriber.side.isConnected).toBe(false);
});

describe('a relay between peers', () => {
  it('sees neither the secret nor messages nor addresses', async () => {
    subscriber = harness.subscriber();
    publisher = harness.publisher();
    const seen: Buffer[] = [];
    const ends = harness.relay();
    const tapped = (duplex: ByteDuplex): ByteDuplex => ({
      read: (reader) => duplex.read(reader),
      write: (bytes, start, end, borrowed) => {
        seen.push(Buffer.from(bytes.subarray(start, end)));
        return duplex.write(bytes, start, end, borrowed);
      },
      resume: () => duplex.resume(),
      end: (onFlushed) => duplex.end(onFlushed),
      reset: (reason) => duplex.reset(reason),
    });
    publisher.side.acceptRelay(tapped(ends.publisher), 'peer_1');
    subscriber.side.attachRelay(tapped(ends.subscriber));
    const opened = subscriber.open();
    await harness.clock.advance(100);
    opened.write('a sentence that nobody in between may read');
    await harness.clock.advance(SOON_MS);
    expect(opened.reader?.bytes).toBe(42);
    const all = Buffer.concat(seen);
    expect(all.length).toBeGreaterThan(1000);
    for (const text of ['a secret of tests', 'a sentence', '10.0.0.', 'candidates', 'service', '"type"']) {
      expect(all.includes(text)).toBe(false);
    }
  });
});

describe('a peer that violates the protocol', () => {
  it('loses the session, and gets a new session on return', async () => {
    publisher = harness.publisher();
    const session = 'ab'.repeat(16);
    const join = (): SealedCarrier => {
      const ends = harness.relay();
      publisher.side.acceptRelay(ends.publisher, 'peer_1');
      const carrier = relayCarrier(ends.subscriber, 'initiator', harness.settings('subscriber', {}), {
        onProven: (proven) => {
          proven.start({
            onBytes: () => false,
            onReady: () => {},
            onClosed: () => {},
            report: rethrow,
            clock: new FakeClock(),
          });
          proven.sendMessage(encodeMessage({ type: 'hello', session }));
        },
        onMessage: () => {},
        onFailed: () => {},
      });
      carrier.begin();
      return carrier;
    };
    const bad = join();
    await harness.clock.advance(200);
    expect(bad.isClosed).toBe(false);
    // A violation of the protocol: DATA on a stream that was never opened.
    bad.sendData(77, Buffer.from('x'), 0, 1);
    await harness.clock.advance(200);
    expect(bad.isClosed).toBe(true);
    const better = join();
    await harness.clock.advance(200);
    expect([better.isClosed, publisher.told]).toEqual([false, ['joined peer_1', 'back peer_1']]);
    better.destroy('enough');
  });
});

describe('the end of a join', () => {
  it('resets direct streams within 2 s when the publisher dismisses the peer', async () => {
    await begin();
    const opened = subscriber.open();
    await harness.clock.advance(200);
    publisher.side.dismiss('peer_1', 'dismissed');
    await harness.clock.advance(1000);
    expect(opened.reader?.reset).not.toBeNull();
    expect(subscriber.told).toContain('relay lost');
    expect(publisher.told.at(-1)).toBe('gone peer_1 dismissed');
    expect(subscriber.side.isConnected).toBe(false);
  });

  it('resets direct streams when the edge revokes it, and another join can follow', async () => {
    await begin();
    const opened = subscriber.open();
    await harness.clock.advance(200);
    subscriber.side.disconnect('revoked');
    expect(opened.reader?.reset).not.toBeNull();
    // The path was closed on purpose, so went-silent is not reported.
    expect(subscriber.paths).not.toContain('relay (went-silent)');
    await harness.clock.advance(2000);
    expect(publisher.told).toContain('stream reset');
    harness.join(subscriber, publisher, 'peer_9');
    await harness.clock.advance(SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
  });

  it('is announced to the other side, and leaves no timer behind', async () => {
    await begin();
    subscriber.side.close({ code: 'cancelled', text: 'stopped' });
    await harness.clock.advance(SOON_MS);
    expect(publisher.told.at(-1)).toBe('gone peer_1 left');
    publisher.side.close({ code: 'cancelled', text: 'stopped' });
    await harness.clock.advance(5000);
    expect(harness.clock.pendingTimers).toBe(0);
  });

  it('is announced on the direct path when the edge is away', async () => {
    await begin();
    relay.cut();
    await harness.clock.advance(100);
    publisher.side.close({ code: 'cancelled', text: 'stopped' });
    await harness.clock.advance(SOON_MS);
    expect(subscriber.side.isConnected).toBe(false);
  });
});
