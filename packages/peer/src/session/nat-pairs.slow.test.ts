// Two peers with the real udx over loopback, behind NATs in user space. A direct path is found where possible, and otherwise the reason
// is reported. The same matrix with kernel NATs is `npm run test:nat`.
import { MemoryBudget, type MuxStream } from '@tunnel/mux';
import { Secret } from '@tunnel/runtime';
import {
  deterministicBytes,
  endPair,
  eventually,
  FastClock,
  hashOf,
  type NatKind,
  RecordingReader,
  rethrow,
  startObservingPorts,
  startUserSpaceNat,
} from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { edgeObserver } from '../direct/edge-observer.ts';
import type { PeerNetwork } from '../direct/own-endpoint.ts';
import type { PeerTransport } from '../transport/peer-transport.ts';
import { loadUdxTransport } from '../transport/udx-transport.ts';
import { HEAD } from './peer-pair.fixture.ts';
import { PeerPublisher } from './peer-publisher.ts';
import type { PeerSettings } from './peer-session.ts';
import { PeerSubscriber } from './peer-subscriber.ts';

const MiB = 1024 * 1024;
/** A clock five times as fast as real time: silent paths time out soon, but packets on a busy machine still arrive in time. */
const clock = new FastClock(5);
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0).reverse()) close();
});

type Location = NatKind | 'none';

const networkAt = async (location: Location): Promise<PeerNetwork & { breakAt(kind: NatKind): void }> => {
  const udx = (await loadUdxTransport()) as PeerTransport;
  const edge = await startObservingPorts();
  closing.push(edge.close);
  const nat = location === 'none' ? null : await startUserSpaceNat(location);
  if (nat !== null) closing.push(nat.close);
  const alone: PeerTransport = { open: (handlers) => udx.open(handlers, '127.0.0.1') };
  const observer = edgeObserver({ host: '127.0.0.1', ports: edge.ports, ...edge.clientKeys() }, clock);
  return {
    loadTransport: () => Promise.resolve(nat?.behind(udx) ?? alone),
    observer: () => observer,
    // Behind a NAT the computer's own address is unreachable.
    ownAddresses: () => (nat === null ? ['127.0.0.1'] : []),
    breakAt: (kind) => {
      if (nat !== null) nat.kind = kind;
    },
  };
};

const settingsOf = (network: PeerNetwork): PeerSettings => ({
  name: 'office-db',
  secret: new Secret('a secret of tests'),
  service: 'tcp',
  direct: true,
  network,
  clock,
  budget: new MemoryBudget(1024 * MiB),
  report: rethrow,
});

interface Pair {
  readonly subscriber: PeerSubscriber;
  readonly publisher: PeerPublisher;
  readonly networks: readonly Awaited<ReturnType<typeof networkAt>>[];
  paths(): readonly string[];
  open(): Promise<MuxStream>;
}

const pairAt = async (one: Location, other: Location): Promise<Pair> => {
  const networks = await Promise.all([networkAt(one), networkAt(other)]);
  const relay = await endPair('stream-plain');
  closing.push(relay.close);
  const publisher = new PeerPublisher(settingsOf(networks[1]), {
    onStream: (stream) => {
      stream.accept();
      stream.read({
        onData: (bytes, start, end) => stream.write(bytes, start, end, false),
        onDrain: () => stream.resume(),
        onEnd: () => stream.end(),
        onReset: () => {},
        abandon: rethrow,
      });
    },
    onDatagramStream: () => {},
    onJoined: () => {},
    onPath: () => {},
    onAttempt: () => {},
    onGone: () => {},
    onFailed: (_peerId, fault) => rethrow(fault),
  });
  const subscriber = new PeerSubscriber(settingsOf(networks[0]), {
    onReady: () => {},
    onPath: () => {},
    onRelayLost: () => {},
    onFailed: rethrow,
  });
  closing.push(() => {
    const bye = { code: 'cancelled', text: 'test is over' } as const;
    subscriber.close(bye);
    publisher.close(bye);
  });
  publisher.acceptRelay(relay.b, 'peer_1');
  subscriber.attachRelay(relay.a);
  const textOf = ({ path, reason }: { path: string; reason: string }): string => [path, reason].join(' ').trim();
  return {
    subscriber,
    publisher,
    networks,
    paths: () => [textOf(subscriber.path), ...publisher.peers.map(({ path }) => textOf(path))],
    open: () =>
      new Promise((resolve, reject) => {
        const onRefused = (reason: { text: string }): void => reject(new Error(reason.text));
        subscriber.open(HEAD, { onOpened: resolve, onRefused, abandon: rethrow });
      }),
  };
};

/** Sends bytes through a new stream, and expects the same bytes back. */
const echoes = async (pair: Pair, bytes: Buffer): Promise<void> => {
  const stream = await pair.open();
  const reader = new RecordingReader(stream);
  stream.write(bytes, 0, bytes.length, false);
  stream.end();
  await eventually(() => expect(reader.ended).toBe(true));
  expect(reader.digest()).toBe(hashOf(bytes));
};

describe('two peers behind NATs', () => {
  it.each<[Location, Location]>([
    ['none', 'none'],
    ['moderate', 'moderate'],
    ['open', 'strict'],
    ['strict', 'open'],
    ['none', 'strict'],
  ])('%s and %s connect directly and transfer bytes unchanged', async (one, other) => {
    const pair = await pairAt(one, other);
    await echoes(pair, Buffer.from('through the relay, at once'));
    await eventually(() => expect(pair.paths()).toEqual(['direct', 'direct']));
    await echoes(pair, Buffer.from(deterministicBytes(1 * MiB, 7)));
    expect(pair.subscriber.bytes.directBytes).toBeGreaterThan(2 * MiB);
  });

  it.each<[Location, Location, string]>([
    ['strict', 'strict', 'relay random-ports'],
    ['none', 'blocked', 'relay udp-blocked'],
    ['blocked', 'blocked', 'relay udp-blocked'],
  ])('%s and %s stay on the relay: %s', async (one, other, path) => {
    const pair = await pairAt(one, other);
    await eventually(() => expect(pair.paths()).toEqual([path, path]));
    await echoes(pair, Buffer.from(deterministicBytes(1 * MiB, 8)));
    expect(pair.subscriber.bytes.directBytes).toBe(0);
  });

  it('fall back to the relay when their direct path is cut', async () => {
    const pair = await pairAt('moderate', 'moderate');
    await eventually(() => expect(pair.paths()).toEqual(['direct', 'direct']));
    const stream = await pair.open();
    const reader = new RecordingReader(stream);
    for (const network of pair.networks) network.breakAt('blocked');
    stream.write(Buffer.from('lost'), 0, 4, false);
    await eventually(() => expect(pair.paths()).toEqual(['relay went-silent', 'relay went-silent']));
    expect(reader.reset?.code).toBe('carrier-lost');
    await echoes(pair, Buffer.from('well'));
  });
});
