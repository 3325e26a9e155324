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

/** Long enough for words through the relay and a punch, shorter than every pause. */
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

describe('the relay first', () => {
  it('a stream opens over the relay at once, while the direct path is looked for', async () => {
    subscriber = harness.subscriber();
    publisher = harness.publisher();
    harness.join(subscriber, publisher);
    const opened = subscriber.open();
    // Two messages of the handshake, OPEN and its answer.
    await harness.clock.advance(4 * 20 + 5);
    expect(opened.stream?.state).toBe('open');
    expect([subscriber.told, publisher.told]).toEqual([['ready'], ['joined peer_1']]);
    expect(subscriber.path).toBe('relay (punching)');
    opened.write('hello');
    await harness.clock.advance(50);
    expect(opened.reader?.bytes).toBe(5);
  });

  it('then new streams go direct, and one that began on the relay ends there', async () => {
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

  it('a relay whose round trip takes no time leads to a direct path like any other', async () => {
    harness.relays.delayMs = 0;
    subscriber = harness.subscriber();
    publisher = harness.publisher();
    harness.join(subscriber, publisher);
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await harness.clock.advance(SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
  });

  it('only the subscriber opens streams', async () => {
    await begin();
    expect(subscriber.open().refused).toBeNull();
    expect('open' in publisher.side).toBe(false);
  });
});

describe('no direct path', () => {
  it.each([
    ['off', { direct: false }, {}],
    ['off', {}, { direct: false }],
    ['off', { observer: null }, {}],
    ['no-transport', { transport: null }, {}],
    ['no-transport', {}, { transport: null }],
  ] as const)('%s: both sides say so, and streams go through the relay', async (reason, one, other) => {
    await begin(one, other);
    expect([subscriber.path, publisher.path]).toEqual([`relay (${reason})`, `relay (${reason})`]);
    expect((await echo('well')).bytes).toBe(4);
    expect(subscriber.side.bytes.directBytes).toBe(0);
    expect(publisher.attempts).toEqual(reason === 'off' ? [] : ['no-transport']);
  });

  it('one that must not go direct never says that it tries', async () => {
    await begin({ direct: false }, { direct: false });
    expect([subscriber.paths, publisher.paths]).toEqual([['relay (off)'], ['relay (off)']]);
  });

  it.each([
    ['udp-blocked', 'none', 'consistent'],
    ['udp-blocked', 'random', 'none'],
    ['random-ports', 'random', 'random'],
    ['punching', 'random', 'consistent'],
    ['punching', 'consistent', 'consistent'],
  ] as const)('%s is said at once for %s and %s ports', async (reason, one, other) => {
    harness.cut();
    await begin({ ports: one }, { ports: other });
    expect([subscriber.path, publisher.path]).toEqual([`relay (${reason})`, `relay (${reason})`]);
  });

  it.each([
    ['no-answer', 'consistent'],
    ['random-ports', 'random'],
  ] as const)('%s when nobody has answered, with %s ports on one side', async (reason, ports) => {
    harness.cut();
    await begin({ ports });
    await harness.clock.advance(ROUND_MS);
    expect([subscriber.path, publisher.path]).toEqual([`relay (${reason})`, `relay (${reason})`]);
    expect((await echo('well')).bytes).toBe(4);
    expect(publisher.attempts).toEqual([reason]);
    // Each round counts once, however often the publisher looks by itself.
    await harness.clock.advance(MUX_LIMITS.PATH_RETRY_FIRST_MS + 2 * SOON_MS + ROUND_MS);
    expect(publisher.attempts).toEqual([reason, reason]);
  });

  it.each(['subscriber', 'publisher'] as const)('what the %s sends is lost: neither side calls it up', async (side) => {
    harness.blockFrom(side);
    await begin();
    await harness.clock.advance(2 * ROUND_MS);
    expect([...subscriber.paths, ...publisher.paths]).not.toContain('direct');
    expect((await echo('well')).bytes).toBe(4);
  });

  it.each(['subscriber', 'publisher'] as const)(
    'a slow network that is open one way, not from the %s: the pauses between rounds grow',
    async (side) => {
      harness.network.delayMs = 300;
      harness.blockFrom(side);
      await begin();
      await harness.clock.advance(120_000);
      expect(publisher.attempts).toEqual(['no-answer', 'no-answer', 'no-answer']);
    },
  );

  it('is tried again, and found when the way is open', async () => {
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
    'an address of the %s changes: it is tried at once, whatever the pause',
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

  it('a third of all packets lost: it takes longer, and is found', async () => {
    harness.network.lossShare = 1 / 3;
    await begin();
    await harness.clock.advance(2 * SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
  });
});

describe('a direct path that goes silent', () => {
  it('in use: its streams are reset within 5 s on both sides, and new ones go through the relay', async () => {
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

  it('idle: left within 15 s', async () => {
    await begin();
    harness.cut();
    await harness.clock.advance(15_000);
    expect([subscriber.path, publisher.path]).toEqual(['relay (went-silent)', 'relay (went-silent)']);
  });

  it.each(['subscriber', 'publisher'] as const)('one way alone, from the %s: both leave it', async (side) => {
    await begin();
    harness.blockFrom(side);
    await harness.clock.advance(15_000);
    expect([subscriber.path, publisher.path]).toEqual(['relay (went-silent)', 'relay (went-silent)']);
  });

  it('comes back when the network does', async () => {
    await begin();
    harness.cut();
    await harness.clock.advance(15_000);
    harness.network.restore();
    await harness.clock.advance(MUX_LIMITS.PATH_RETRY_SECOND_MS + ROUND_MS + SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
    expect((await echo('direct again')).bytes).toBe(12);
  });

  it('2 % of loss for five minutes does not leave it', async () => {
    await begin();
    harness.network.lossShare = 0.02;
    await harness.clock.advance(300_000);
    expect([subscriber.paths.slice(-1), publisher.paths.slice(-1)]).toEqual([['direct'], ['direct']]);
    expect(subscriber.paths.filter((path) => path === 'direct')).toHaveLength(1);
  });
});

describe('an edge that is lost', () => {
  it('costs nothing that runs direct; the relay comes back to the same session', async () => {
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

  it('in the moment in which only the subscriber calls the direct path proven: it is not lost', async () => {
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

  it('after its return a direct path that dies is found again, bound to the new relay', async () => {
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

  it('addresses that were asked for before it, and are answered after its return, disturb nothing', async () => {
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

  it('with no direct path the publisher waits for the peer, and then lets it go', async () => {
    await begin({ direct: false });
    relay.cut();
    await harness.clock.advance(PEER_ABSENT_MS - 1000);
    expect(publisher.side.peers).toHaveLength(1);
    await harness.clock.advance(2000);
    expect(publisher.told.at(-1)).toBe('gone peer_1 lost');
    expect(publisher.side.peers).toHaveLength(0);
  });

  it('an opening waits a little for the next relay', async () => {
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
