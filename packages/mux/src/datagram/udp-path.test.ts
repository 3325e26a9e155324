import { randomBytes } from 'node:crypto';
import type { RemoteInfo } from 'node:dgram';
import { eventually, FakeClock, rethrow, startUdpRelay, type UdpRelay } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MUX_LIMITS } from '../limits.ts';
import { PacketSocket } from './packet-socket.ts';
import { SEALED_KIND, SealingKey } from './sealed-datagram.ts';
import { encodePing } from './sealed-ping.ts';
import { type PathKeys, UdpPath, type UdpPathOptions } from './udp-path.ts';

/** One end of a UDP path, with its received datagrams, reported paths and refused packets. */
interface End {
  readonly path: UdpPath;
  readonly socket: PacketSocket;
  readonly datagrams: string[];
  readonly ways: string[];
  readonly refused: string[];
  readonly arrivals: Buffer[];
}

const id = Buffer.from('0011223344556677', 'hex');
const hello = Buffer.from('..hello..');
let clock: FakeClock;
let relay: UdpRelay;
let edge: End;
let client: End;
let toEdge: Buffer;
let toClient: Buffer;

const makeEnd = (keys: PathKeys, given: Partial<UdpPathOptions>): End => {
  const [datagrams, ways, refused, arrivals]: [string[], string[], string[], Buffer[]] = [[], [], [], []];
  const path: UdpPath = new UdpPath({
    keys,
    clock,
    follows: false,
    batches: true,
    report: rethrow,
    onDatagram: (flow, bytes, start, end) => void datagrams.push(`${flow}: ${bytes.toString('latin1', start, end)}`),
    onChange: () => ways.push(`${path.way.path} ${path.way.reason}`.trim()),
    ...given,
  });
  const onPacket = (packet: Buffer, from: RemoteInfo): void => {
    arrivals.push(packet);
    const refusal = path.receive(packet, from, socket);
    if (refusal !== null) refused.push(refusal);
  };
  const socket: PacketSocket = new PacketSocket({ family: 4, onPacket, report: rethrow });
  return { path, socket, datagrams, ways, refused, arrivals };
};

const pongsAt = ({ arrivals }: End): number => arrivals.filter(([kind]) => kind === SEALED_KIND.PONG).length;

beforeEach(async () => {
  clock = new FakeClock();
  [toEdge, toClient] = [randomBytes(32), randomBytes(32)];
  edge = makeEnd({ id, sealing: toClient, opening: toEdge }, { follows: true });
  client = makeEnd({ id, sealing: toEdge, opening: toClient }, {});
  const { port } = await edge.socket.bind('127.0.0.1', 0);
  relay = await startUdpRelay({ target: { host: '127.0.0.1', port } });
  await client.socket.connect({ address: relay.host, port: relay.port });
  client.path.route = { socket: client.socket };
});

afterEach(() => {
  for (const { path, socket } of [edge, client]) {
    path.stop();
    socket.close();
  }
  relay.close();
  expect(clock.pendingTimers).toBe(0);
});

/** Starts the client's path and waits until both ends are up. Real sockets respond while the fake clock stands still. */
const bothUp = async (): Promise<void> => {
  client.path.start();
  await eventually(() => expect([client.path.isUp, edge.path.isUp]).toEqual([true, true]));
};

/** Advances the clock in steps of 100 ms, with time for packets in between. */
const run = async (ms: number, each: () => void = () => {}): Promise<void> => {
  for (let passed = 0; passed < ms; passed += 100) {
    each();
    await clock.advance(100);
    // Packets cross two sockets of the ends and two of the relay.
    for (let turn = 0; turn < 8; turn += 1) await new Promise(setImmediate);
  }
};

const sendBothWays = (): void => {
  client.path.send(1, hello, 2, 7);
  edge.path.send(1, hello, 2, 7);
};

describe('datagrams over a UDP path', () => {
  it('travel in both directions from a part of a larger buffer', async () => {
    await bothUp();
    expect(client.path.send(7, hello, 2, 7)).toBe(true);
    await eventually(() => expect(edge.datagrams).toEqual(['7: hello']));
    expect(edge.path.send(8, hello, 2, 4)).toBe(true);
    await eventually(() => expect(client.datagrams).toEqual(['8: he']));
  });

  it('share a packet if they are sent in the same turn, and have packets of their own otherwise', async () => {
    await bothUp();
    const before = relay.sent.length;
    for (const flow of [7, 9, 7]) client.path.send(flow, hello, 2, 7);
    await eventually(() => expect(edge.datagrams).toEqual(['7: hello', '9: hello', '7: hello']));
    client.path.send(7, hello, 2, 4);
    await eventually(() => expect(edge.datagrams.at(-1)).toBe('7: he'));
    expect(relay.sent.slice(before).map(([kind]) => kind)).toEqual([SEALED_KIND.DATAGRAMS, SEALED_KIND.DATAGRAM]);
  });

  it('have packets of their own if the ends did not agree on batches', async () => {
    const [alone, other] = [client, edge].map((end, i) => {
      const [sealing, opening] = i === 0 ? [toEdge, toClient] : [toClient, toEdge];
      end.path.stop();
      return makeEnd({ id, sealing, opening }, { follows: i === 1, batches: false });
    }) as [End, End];
    alone.path.route = { socket: client.socket };
    const before = relay.sent.length;
    for (const flow of [7, 9]) expect(alone.path.send(flow, hello, 2, 7)).toBe(true);
    await eventually(() => expect(relay.sent.length).toBe(before + 2));
    const packets = relay.sent.slice(before);
    expect(packets.map(([kind]) => kind)).toEqual([SEALED_KIND.DATAGRAM, SEALED_KIND.DATAGRAM]);
    const batch = Buffer.from(packets[0] as Buffer);
    batch[0] = SEALED_KIND.DATAGRAMS;
    const from = { address: '127.0.0.1', port: 9 } as RemoteInfo;
    expect(other.path.receive(batch, from, other.socket)).toBe('malformed');
    for (const packet of packets) expect(other.path.receive(packet, from, other.socket)).toBeNull();
    expect(other.datagrams).toEqual(['7: hello', '9: hello']);
    for (const { path, socket } of [alone, other]) {
      path.stop();
      socket.close();
    }
  });

  it('arrive whole and once if packets are lost, repeated and out of order', async () => {
    await bothUp();
    relay.block = 'to-target';
    const from = relay.sent.length;
    const packets = 5;
    for (let n = 0; n < packets; n += 1) {
      for (const flow of [7, 9]) client.path.send(flow, Buffer.from(`${n}`), 0, 1);
      await eventually(() => expect(relay.sent.length).toBe(from + n + 1));
    }
    const [first, second, , fourth, fifth] = relay.sent.slice(from) as [Buffer, Buffer, Buffer, Buffer, Buffer];
    for (const packet of [fifth, second, fifth, fourth, first, second]) relay.inject(packet);
    const expected = [4, 1, 3, 0].flatMap((n) => [`7: ${n}`, `9: ${n}`]);
    await eventually(() => expect(edge.refused).toEqual(['replayed', 'replayed']));
    await eventually(() => expect(edge.datagrams.toSorted()).toEqual(expected.toSorted()));
  });

  it('are sent before the path stops in the same turn', async () => {
    await bothUp();
    expect(client.path.send(7, hello, 2, 7)).toBe(true);
    client.path.stop();
    await eventually(() => expect(edge.datagrams).toEqual(['7: hello']));
  });
});

describe('a UDP path', () => {
  it('is up once each end has received a response to its own PING', async () => {
    await bothUp();
    expect([client.ways, edge.ways]).toEqual([
      ['carrier probing', 'udp'],
      ['carrier probing', 'udp'],
    ]);
  });

  it.each(['to-target', 'to-senders', 'everything'] as const)(
    'is up at neither end while %s is blocked',
    async (block) => {
      relay.block = block;
      client.path.start();
      await run(9500);
      expect([client.path.way, edge.path.isUp]).toEqual([{ path: 'carrier', reason: 'udp-blocked' }, false]);
      expect([...client.ways, ...edge.ways]).not.toContain('udp');
    },
  );

  it('stays up while idle, because PINGs keep the NAT mapping alive', async () => {
    await bothUp();
    let quietMs = 0;
    let last = relay.sent.length;
    let longest = 0;
    await run(120_000, () => {
      quietMs = relay.sent.length > last ? 0 : quietMs + 100;
      last = relay.sent.length;
      longest = Math.max(longest, quietMs);
    });
    expect([client.path.isUp, edge.path.isUp]).toEqual([true, true]);
    expect(longest).toBeLessThan(15_000);
  });
});

describe('a UDP path that falls silent', () => {
  it.each(['to-target', 'to-senders', 'everything'] as const)(
    'is left within 5 s at both ends when %s is blocked, and used again once open',
    async (block) => {
      await bothUp();
      await run(12_000, sendBothWays);
      relay.block = block;
      await run(5000, sendBothWays);
      expect([client.path.way, edge.path.way]).toEqual([
        { path: 'carrier', reason: 'went-silent' },
        { path: 'carrier', reason: 'went-silent' },
      ]);
      relay.block = 'nothing';
      await run(5500);
      expect([client.path.isUp, edge.path.isUp]).toEqual([true, true]);
    },
  );

  it('calls onRetry before the next attempt, so that the owner can open another socket', async () => {
    let retries = 0;
    const other = makeEnd({ id, sealing: toEdge, opening: toClient }, { onRetry: () => (retries += 1) });
    other.path.route = { socket: client.socket };
    relay.block = 'everything';
    other.path.start();
    await run(9500);
    expect(retries).toBe(0);
    await run(5000);
    expect(retries).toBe(1);
    other.path.stop();
    other.socket.close();
  });

  it('accepts and sends no datagrams once stopped', async () => {
    await bothUp();
    edge.path.stop();
    const refused = edge.refused.length;
    client.path.send(1, hello, 0, 9);
    await eventually(() => expect(edge.refused.length).toBe(refused + 1));
    expect(edge.datagrams).toEqual([]);
    expect(edge.path.send(1, hello, 0, 9)).toBe(false);
    expect(edge.path.way).toEqual({ path: 'carrier', reason: 'off' });
  });
});

it('a UDP path is switched off when the onChange callback throws', async () => {
  const caught: string[] = [];
  const broken = makeEnd(
    { id, sealing: toEdge, opening: toClient },
    {
      onChange: () => {
        throw new Error('mine');
      },
      report: (_error, where) => caught.push(where),
    },
  );
  broken.path.route = { socket: client.socket };
  relay.block = 'everything';
  expect(() => broken.path.start()).toThrow('mine');
  await run(9500);
  expect(caught).toEqual(['udp-path.tick']);
  expect([broken.path.isUp, broken.path.way.reason]).toEqual([false, 'off']);
  broken.socket.close();
});

describe('PING and PONG', () => {
  it('have equal sizes, so that no response is larger than its request', async () => {
    await bothUp();
    const sizes = new Set([...client.arrivals, ...edge.arrivals].map(({ length }) => length));
    expect(sizes.size).toBe(1);
  });

  it('an unrequested PONG proves nothing', async () => {
    const sealing = new SealingKey(id, toClient);
    const into = Buffer.alloc(100);
    const end = sealing.seal(SEALED_KIND.PONG, Buffer.alloc(26, 1), into, 0);
    relay.block = 'everything';
    client.path.start();
    expect(client.path.receive(into.subarray(0, end), {} as never, client.socket)).toBeNull();
    expect(client.path.isUp).toBe(false);
  });

  it('responses are limited to a number per second', async () => {
    await bothUp();
    const most = 2 * MUX_LIMITS.PATH_PINGS_ANSWERED_PER_SECOND;
    const answered = pongsAt(client);
    const ping = (): boolean => client.socket.send(client.path.sealing, SEALED_KIND.PING, encodePing(randomBytes(8)));
    const before = edge.arrivals.length;
    for (let i = 0; i < most + 20; i += 1) {
      ping();
      if (i % 20 === 19) await eventually(() => expect(edge.arrivals.length).toBe(before + i + 1));
    }
    await eventually(() => expect(edge.arrivals.length).toBe(before + most + 20));
    await eventually(() => expect(pongsAt(client)).toBe(most));
    expect(answered).toBe(1);
    await clock.advance(1000);
    ping();
    await eventually(() => expect(pongsAt(client)).toBe(most + 1));
  });
});

describe('the remote address of a UDP path', () => {
  it('is the address of the newest authenticated packet', async () => {
    await bothUp();
    const before = edge.path.route?.to?.port;
    relay.changeAddresses();
    client.path.send(1, hello, 0, 9);
    await eventually(() => expect(edge.datagrams.length).toBe(1));
    expect(edge.path.route?.to?.port).not.toBe(before);
    edge.path.send(2, hello, 0, 9);
    await eventually(() => expect(client.datagrams).toEqual(['2: ..hello..']));
  });

  it('is not changed by a replay, a late old packet or a forged packet', async () => {
    await bothUp();
    const at = relay.sent.length;
    relay.block = 'to-target';
    client.path.send(1, Buffer.from('late'), 0, 4);
    await eventually(() => expect(relay.sent.length).toBe(at + 1));
    relay.block = 'nothing';
    client.path.send(1, hello, 0, 9);
    await eventually(() => expect(edge.datagrams.length).toBe(1));
    const { route } = edge.path;
    // Injects a replayed packet, a genuine late packet and a forged packet, from three different addresses.
    const forged = Buffer.from(relay.sent[at + 1] as Buffer);
    forged[15] = 0xff;
    for (const packet of [relay.sent[0] as Buffer, relay.sent[at] as Buffer, forged]) relay.inject(packet);
    await eventually(() => expect([...edge.refused].sort()).toEqual(['forged', 'replayed']));
    await eventually(() => expect(edge.datagrams).toEqual(['1: ..hello..', '1: late']));
    expect(edge.path.route).toBe(route);
  });
});

it('gets no response to unsealed packets, and malformed packets are dropped', async () => {
  await bothUp();
  const { sealed } = edge.path.sealing;
  for (let i = 0; i < 50; i += 1) relay.inject(Buffer.concat([Buffer.from([i % 7]), id, randomBytes(i)]));
  await eventually(() => expect(edge.refused.length).toBe(50));
  expect(edge.path.sealing.sealed).toBe(sealed);
  for (const kind of [SEALED_KIND.PROBE, SEALED_KIND.DATAGRAM, SEALED_KIND.PING] as const) {
    client.socket.send(client.path.sealing, kind, Buffer.alloc(3));
  }
  await eventually(() => expect(edge.refused.length).toBe(53));
  expect(new Set(edge.refused.slice(50))).toEqual(new Set(['malformed']));
  expect(edge.path.sealing.sealed).toBe(sealed);
});
