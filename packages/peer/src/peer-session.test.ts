import { MUX_LIMITS } from '@tunnel/mux';
import { rethrow } from '@tunnel/testkit';
import { beforeEach, describe, expect, it } from 'vitest';
import { CORE_LIMITS } from '../../core/src/limits.ts';
import { PEER_LIMITS } from './limits.ts';
import { Harness, HEAD, type PublisherSide, type SideOptions, type SubscriberSide } from './peer-pair.fixture.ts';

let harness: Harness;
let subscriber: SubscriberSide;
let publisher: PublisherSide;
let relay: { cut(): void };

/** Long enough for words through the relay and a punch, shorter than every pause. */
const SOON_MS = 1000;
const ROUND_MS = CORE_LIMITS.PATH_TRIES * CORE_LIMITS.PATH_TRY_MS;

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
    await harness.clock.advance(CORE_LIMITS.PATH_RETRY_FIRST_MS + 2 * SOON_MS + ROUND_MS);
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
    await harness.clock.advance(CORE_LIMITS.PATH_RETRY_FIRST_MS + SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
    expect(publisher.attempts).toEqual(['no-answer', 'direct']);
  });

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
    await harness.clock.advance(CORE_LIMITS.PATH_RETRY_SECOND_MS + ROUND_MS + SOON_MS);
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
    await harness.clock.advance(CORE_LIMITS.PATH_RETRY_SECOND_MS + ROUND_MS + SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
  });

  it('with no direct path the publisher waits for the peer, and then lets it go', async () => {
    await begin({ direct: false });
    relay.cut();
    await harness.clock.advance(PEER_LIMITS.PEER_ABSENT_MS - 1000);
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

describe('who is at the other end', () => {
  it('another secret: both sides say that it was not proven', async () => {
    await begin({ secret: 'not the secret of tests' });
    expect(subscriber.told).toEqual(['P2P_PROOF_FAILED']);
    expect(publisher.told).toEqual(['P2P_PROOF_FAILED peer_1']);
    expect(publisher.side.peers).toHaveLength(0);
  });

  it('another kind of service: the subscriber says so, and nobody has joined', async () => {
    await begin({ service: 'udp' });
    expect(subscriber.told).toEqual(['P2P_SERVICE_MISMATCH']);
    expect(publisher.told).toEqual([]);
  });

  it('bytes that came before anybody reads them are read all the same: garbage is refused', async () => {
    subscriber = harness.subscriber();
    publisher = harness.publisher();
    const [one, other] = [harness.relay(), harness.relay()];
    one.subscriber.write(Buffer.from([0, 3, 1, 2, 3]), 0, 5, false);
    other.publisher.write(Buffer.from([0, 0]), 0, 2, false);
    await harness.clock.advance(100);
    publisher.side.acceptRelay(one.publisher, 'peer_1');
    subscriber.side.attachRelay(other.subscriber);
    await harness.clock.advance(100);
    expect([subscriber.told, publisher.told]).toEqual([['P2P_PROOF_FAILED'], ['P2P_PROOF_FAILED peer_1']]);
  });

  it('streams swapped between two pairs come to nothing', async () => {
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

  it('a publisher that was replaced: what runs to the old one ends, and new streams go to the new one', async () => {
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

  it('two subscribers are two peers, each with its own direct path', async () => {
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

describe('the end of permission', () => {
  it('a dismissed peer loses its direct streams within 2 s', async () => {
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

  it('what the subscriber is told by the edge ends its direct streams, and another join may follow', async () => {
    await begin();
    const opened = subscriber.open();
    await harness.clock.advance(200);
    subscriber.side.disconnect('revoked');
    expect(opened.reader?.reset).not.toBeNull();
    await harness.clock.advance(2000);
    expect(publisher.told).toContain('stream reset');
    harness.join(subscriber, publisher, 'peer_9');
    await harness.clock.advance(SOON_MS);
    expect([subscriber.path, publisher.path]).toEqual(['direct', 'direct']);
  });

  it('whoever leaves says so; no timer, no socket is left behind', async () => {
    await begin();
    subscriber.side.close({ code: 'cancelled', text: 'stopped' });
    await harness.clock.advance(SOON_MS);
    expect(publisher.told.at(-1)).toBe('gone peer_1 left');
    publisher.side.close({ code: 'cancelled', text: 'stopped' });
    await harness.clock.advance(5000);
    expect(harness.clock.pendingTimers).toBe(0);
  });

  it('a publisher that stops without an edge is heard on the direct path', async () => {
    await begin();
    relay.cut();
    await harness.clock.advance(100);
    publisher.side.close({ code: 'cancelled', text: 'stopped' });
    await harness.clock.advance(SOON_MS);
    expect(subscriber.side.isConnected).toBe(false);
  });
});

describe('a udp service', () => {
  it('flows begin on the relay and go direct when it is there', async () => {
    await begin({ service: 'udp', direct: false }, { service: 'udp' });
    const answers: string[] = [];
    const flow = subscriber.side.openDatagrams(HEAD, {
      onOpened: () => {},
      onRefused: (reason) => answers.push(reason.code),
      abandon: rethrow,
    });
    flow?.read({
      onDatagram: (bytes, start, end) => answers.push(bytes.toString('utf8', start, end)),
      onReset: () => answers.push('reset'),
      abandon: rethrow,
    });
    expect(flow?.send(Buffer.from('one'), 0, 3)).toBe('sent');
    await harness.clock.advance(200);
    expect(answers).toEqual(['one']);
    expect(subscriber.side.bytes.directBytes).toBe(0);
  });

  it('sealed datagrams on the direct path: small ones do not touch any carrier', async () => {
    await begin({ service: 'udp' }, { service: 'udp' });
    expect(subscriber.path).toBe('direct');
    const answers: string[] = [];
    const flow = subscriber.side.openDatagrams(HEAD, {
      onOpened: () => {},
      onRefused: (reason) => answers.push(reason.code),
      abandon: rethrow,
    });
    flow?.read({
      onDatagram: (bytes, start, end) => answers.push(bytes.toString('utf8', start, end)),
      onReset: () => answers.push('reset'),
      abandon: rethrow,
    });
    flow?.send(Buffer.from('first'), 0, 5);
    await harness.clock.advance(200);
    expect(answers).toEqual(['first']);
    const before = subscriber.side.bytes.directBytes;
    flow?.send(Buffer.alloc(1000, 'x'), 0, 1000);
    await harness.clock.advance(50);
    expect(answers[1]).toBe('x'.repeat(1000));
    expect(subscriber.side.bytes.directBytes - before).toBeLessThan(2200);
    // It is lost with the path, as a datagram is; the next flow goes through the relay.
    harness.cut();
    flow?.send(Buffer.from('lost'), 0, 4);
    await harness.clock.advance(15_000);
    expect(answers).not.toContain('lost');
    expect(answers.at(-1)).toBe('reset');
  });
});
