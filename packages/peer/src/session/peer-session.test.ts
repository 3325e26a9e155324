import { MUX_LIMITS } from '@tunnel/mux';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ObservedAddresses } from '../direct/candidates.ts';
import { PEER_ADDRESSES_LOOK_EVERY_MS } from '../direct/direct-link.ts';
import { Harness, type PublisherSide, type SideOptions, type SubscriberSide } from './peer-pair.fixture.ts';
import { PEER_ABSENT_MS } from './peer-publisher.ts';

let harness: Harness;
let subscriber: SubscriberSide;
let publisher: PublisherSide;
let relay: { cut(): void };

/** Time for messages through the relay and a hole punch, but shorter than every retry pause. */
const SOON_MS = 1000;
const ROUND_MS = MUX_LIMITS.PATH_TRIES * MUX_LIMITS.PATH_TRY_MS;

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

describe('a peer session that starts on the relay', () => {
  it('opens a stream over the relay at once, while the direct path is probed', async () => {
    subscriber = harness.subscriber();
    publisher = harness.publisher();
    harness.join(subscriber, publisher);
    const opened = subscriber.open();
    // Four relay delays: two handshake messages, OPEN and its response.
    await harness.clock.advance(4 * 20 + 5);
    expect(opened.stream?.state).toBe('open');
    expect([subscriber.told, publisher.told]).toEqual([['ready'], ['joined peer_1']]);
    expect(subscriber.path).toBe('relay (punching)');
    opened.write('hello');
    await harness.clock.advance(50);
    expect(opened.reader?.bytes).toBe(5);
  });

  it('opens new streams directly later, and finishes older streams on the relay', async () => {
    await begin({ ports: 'none' }, {});
    const before = subscriber.open();
    await harness.clock.advance(200);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
    expect([subscriber.paths, publisher.paths].map((paths) => paths.at(-1))).toEqual(['direct', 'direct']);
    expect((await echo('x'.repeat(5000))).bytes).toBe(5000);
    const { directBytes, relayBytes } = subscriber.side.bytes;
    expect(directBytes).toBeGreaterThan(10_000);
    before.write('still here');
    await harness.clock.advance(200);
    expect(before.reader?.bytes).toBe(10);
    expect(subscriber.side.bytes.relayBytes).toBeGreaterThanOrEqual(relayBytes);
    expect(subscriber.side.path.rttMs).toBeGreaterThanOrEqual(20);
    expect(publisher.side.peers[0]?.bytes.directBytes).toBe(subscriber.side.bytes.directBytes);
  });

  it('finds a direct path even if the relay has no delay', async () => {
    harness.relays.delayMs = 0;
    subscriber = harness.subscriber();
    publisher = harness.publisher();
    harness.join(subscriber, publisher);
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await harness.clock.advance(SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
  });

  it('lets only the subscriber open streams', async () => {
    await begin();
    expect(subscriber.open().refused).toBeNull();
    expect('open' in publisher.side).toBe(false);
  });
});

describe('a peer session without a direct path', () => {
  it.each([
    ['off', { direct: false }, {}],
    ['off', {}, { direct: false }],
    ['off', { observer: null }, {}],
    ['no-transport', { transport: null }, {}],
    ['no-transport', {}, { transport: null }],
  ] as const)('reports %s at both sides and uses the relay', async (reason, one, other) => {
    await begin(one, other);
    expect([subscriber.path, publisher.path]).toEqual([`relay (${reason})`, `relay (${reason})`]);
    expect((await echo('well')).bytes).toBe(4);
    expect(subscriber.side.bytes.directBytes).toBe(0);
    expect(publisher.attempts).toEqual(reason === 'off' ? [] : ['no-transport']);
  });

  it('never reports an attempt when direct paths are off', async () => {
    await begin({ direct: false }, { direct: false });
    expect([subscriber.paths, publisher.paths]).toEqual([['relay (off)'], ['relay (off)']]);
  });

  it.each([
    ['udp-blocked', 'none', 'consistent'],
    ['udp-blocked', 'random', 'none'],
    ['random-ports', 'random', 'random'],
    ['punching', 'random', 'consistent'],
    ['punching', 'consistent', 'consistent'],
  ] as const)('reports %s at once for %s and %s ports', async (reason, one, other) => {
    harness.cut();
    await begin({ ports: one }, { ports: other });
    expect([subscriber.path, publisher.path]).toEqual([`relay (${reason})`, `relay (${reason})`]);
  });

  it.each([
    ['no-answer', 'consistent'],
    ['random-ports', 'random'],
  ] as const)('reports %s after a round without a response, with %s ports on one side', async (reason, ports) => {
    harness.cut();
    await begin({ ports });
    await harness.clock.advance(ROUND_MS);
    expect([subscriber.path, publisher.path]).toEqual([`relay (${reason})`, `relay (${reason})`]);
    expect((await echo('well')).bytes).toBe(4);
    expect(publisher.attempts).toEqual([reason]);
    // A round counts once, even if the publisher starts further attempts.
    await harness.clock.advance(MUX_LIMITS.PATH_RETRY_FIRST_MS + 2 * SOON_MS + ROUND_MS);
    expect(publisher.attempts).toEqual([reason, reason]);
  });

  it.each(['subscriber', 'publisher'] as const)('uses the relay while packets of the %s are lost', async (side) => {
    harness.blockFrom(side);
    await begin();
    await harness.clock.advance(2 * ROUND_MS);
    expect([...subscriber.paths, ...publisher.paths]).not.toContain('direct');
    expect((await echo('well')).bytes).toBe(4);
  });

  it.each(['subscriber', 'publisher'] as const)(
    'waits longer after each round on a slow network that blocks the %s',
    async (side) => {
      harness.network.delayMs = 300;
      harness.blockFrom(side);
      await begin();
      await harness.clock.advance(120_000);
      expect(publisher.attempts).toEqual(['no-answer', 'no-answer', 'no-answer']);
    },
  );

  it('tries again, and finds the path once it is open', async () => {
    harness.cut();
    await begin();
    await harness.clock.advance(ROUND_MS);
    expect(subscriber.path).toBe('relay (no-answer)');
    harness.network.restore();
    await harness.clock.advance(MUX_LIMITS.PATH_RETRY_FIRST_MS + SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
    expect(publisher.attempts).toEqual(['no-answer', 'direct']);
  });

  it.each(['subscriber', 'publisher'] as const)(
    'tries at once when an address of the %s changes, whatever the pause',
    async (side) => {
      const moreAddresses: string[] = [];
      harness.cut();
      await begin(side === 'subscriber' ? { moreAddresses } : {}, side === 'publisher' ? { moreAddresses } : {});
      await harness.clock.advance(2 * ROUND_MS + MUX_LIMITS.PATH_RETRY_FIRST_MS + SOON_MS);
      expect(publisher.attempts).toEqual(['no-answer', 'no-answer']);
      harness.network.restore();
      moreAddresses.push('10.0.1.1');
      await harness.clock.advance(PEER_ADDRESSES_LOOK_EVERY_MS + SOON_MS);
      expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
    },
  );

  it('finds a path even if a third of all packets is lost', async () => {
    harness.network.lossShare = 1 / 3;
    await begin();
    await harness.clock.advance(2 * SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
  });
});

describe('a direct path that goes silent', () => {
  it('resets its streams within 5 s on both sides while in use, and new streams use the relay', async () => {
    await begin();
    const opened = subscriber.open();
    await harness.clock.advance(200);
    harness.cut();
    for (let second = 0; second < 5; second += 1) {
      opened.write('anybody there?');
      await harness.clock.advance(1000);
    }
    expect(opened.reader?.reset?.code).toBe('carrier-lost');
    expect(publisher.told).toContain('stream reset');
    expect([subscriber.path, publisher.path]).toEqual(['relay (went-silent)', 'relay (went-silent)']);
    expect((await echo('well')).bytes).toBe(4);
  });

  it('is left within 15 s while idle', async () => {
    await begin();
    harness.cut();
    await harness.clock.advance(15_000);
    expect([subscriber.path, publisher.path]).toEqual(['relay (went-silent)', 'relay (went-silent)']);
  });

  it.each(['subscriber', 'publisher'] as const)(
    'is left by both sides even if only packets of the %s are lost',
    async (side) => {
      await begin();
      harness.blockFrom(side);
      await harness.clock.advance(15_000);
      expect([subscriber.path, publisher.path]).toEqual(['relay (went-silent)', 'relay (went-silent)']);
    },
  );

  it('is used again when the network recovers', async () => {
    await begin();
    harness.cut();
    await harness.clock.advance(15_000);
    harness.network.restore();
    await harness.clock.advance(MUX_LIMITS.PATH_RETRY_SECOND_MS + ROUND_MS + SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
    expect((await echo('direct again')).bytes).toBe(12);
  });

  it('is kept despite 2 % loss for five minutes', async () => {
    await begin();
    harness.network.lossShare = 0.02;
    await harness.clock.advance(300_000);
    expect([subscriber.paths.slice(-1), publisher.paths.slice(-1)]).toEqual([['direct'], ['direct']]);
    expect(subscriber.paths.filter((path) => path === 'direct')).toHaveLength(1);
  });
});

describe('a lost edge', () => {
  it('does not disturb direct streams, and the session continues on the next relay', async () => {
    await begin();
    const opened = subscriber.open();
    await harness.clock.advance(200);
    relay.cut();
    await harness.clock.advance(60_000);
    expect(subscriber.path).toBe('direct');
    opened.write('still here');
    await harness.clock.advance(200);
    expect(opened.reader?.bytes).toBe(10);
    expect((await echo('new')).bytes).toBe(3);
    harness.join(subscriber, publisher, 'peer_2');
    await harness.clock.advance(SOON_MS);
    expect(publisher.told).toEqual(['joined peer_1', 'back peer_2']);
    expect(publisher.side.peers.map(({ peerId }) => peerId)).toEqual(['peer_2']);
    opened.write('and again');
    await harness.clock.advance(200);
    expect([opened.reader?.bytes, subscriber.path]).toEqual([19, 'direct']);
  });

  it('does not end a direct path that only the subscriber considers proven yet', async () => {
    subscriber = harness.subscriber();
    publisher = harness.publisher();
    relay = harness.join(subscriber, publisher);
    for (let ms = 0; ms < SOON_MS && subscriber.path !== 'direct'; ms += 1) await harness.clock.advance(1);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'relay (punching)']);
    relay.cut();
    await harness.clock.advance(SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
    expect((await echo('well')).bytes).toBe(4);
  });

  it('does not prevent a failed direct path from being found again over the new relay', async () => {
    await begin();
    relay.cut();
    await harness.clock.advance(1000);
    harness.join(subscriber, publisher);
    await harness.clock.advance(1000);
    harness.cut();
    await harness.clock.advance(15_000);
    expect(subscriber.path).toBe('relay (went-silent)');
    harness.network.restore();
    await harness.clock.advance(MUX_LIMITS.PATH_RETRY_SECOND_MS + ROUND_MS + SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
  });

  it('does not let late observed addresses from before the loss disturb the new path', async () => {
    const answers: ((found: ObservedAddresses) => void)[] = [];
    const ask = () => ({
      onDatagram: () => false,
      result: new Promise<ObservedAddresses>((resolve) => void answers.push(resolve)),
      stop: () => {},
    });
    await begin({ observer: { ask } });
    relay.cut();
    await harness.clock.advance(SOON_MS);
    harness.join(subscriber, publisher);
    await harness.clock.advance(SOON_MS);
    const found = { addresses: [], ports: 'consistent' } as const;
    answers[1]?.(found);
    await harness.clock.advance(SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
    answers[0]?.(found);
    await harness.clock.advance(SOON_MS);
    expect([subscriber.path, publisher.path, publisher.attempts]).toEqual(['direct', 'direct', ['direct']]);
  });

  it('without a direct path makes the publisher wait for the peer, and then drop it', async () => {
    await begin({ direct: false });
    relay.cut();
    await harness.clock.advance(PEER_ABSENT_MS - 1000);
    expect(publisher.side.peers).toHaveLength(1);
    await harness.clock.advance(2000);
    expect(publisher.told.at(-1)).toBe('gone peer_1 lost');
    expect(publisher.side.peers).toHaveLength(0);
  });

  it('delays a new stream briefly until the next relay', async () => {
    await begin({ direct: false });
    relay.cut();
    await harness.clock.advance(100);
    const opened = subscriber.open();
    await harness.clock.advance(MUX_LIMITS.CARRIER_WAIT_MS / 2);
    harness.join(subscriber, publisher);
    await harness.clock.advance(500);
    expect(opened.stream?.state).toBe('open');
  });
});
