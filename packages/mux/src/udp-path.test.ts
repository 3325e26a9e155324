import { randomBytes } from 'node:crypto';
import { eventually, rethrow, startUdpRelay, type UdpRelay } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MUX_LIMITS } from './limits.ts';
import { PacketSocket } from './packet-socket.ts';
import { SEALED_KIND } from './sealed-datagram.ts';
import { type PathKeys, UdpPath } from './udp-path.ts';

/** One end with what it was told, and the packets that it refused. */
interface End {
  readonly path: UdpPath;
  readonly told: string[];
  readonly refused: string[];
}

let now = 0;
let toEdge: Buffer;
let toClient: Buffer;
const id = Buffer.from('0011223344556677', 'hex');
let relay: UdpRelay;
let closing: (() => void)[];
let edge: End;
let client: End;
let edgeSocket: PacketSocket;
let clientSocket: PacketSocket;
/** Every packet that an end got, with where it came from. */
let arrivals: { packet: Buffer; port: number }[];

const makeEnd = (keys: PathKeys): End => {
  const told: string[] = [];
  const path = new UdpPath({
    keys,
    now: () => now,
    handlers: {
      onHeard: () => {},
      onAnswered: (rttMs) => told.push(`answered after ${rttMs}`),
      onLeft: () => told.push('left'),
      onDatagram: (flow, bytes, start, end) => told.push(`${flow}: ${bytes.toString('latin1', start, end)}`),
    },
  });
  return { path, told, refused: [] };
};

beforeEach(async () => {
  now = 1000;
  [toEdge, toClient] = [randomBytes(32), randomBytes(32)];
  arrivals = [];
  edge = makeEnd({ id, sealing: toClient, opening: toEdge });
  client = makeEnd({ id, sealing: toEdge, opening: toClient });
  const receiveAt = (end: End, socket: () => PacketSocket, follow: boolean) => (packet: Buffer, from: never) => {
    arrivals.push({ packet, port: (from as { port: number }).port });
    const refusal = end.path.receive(packet, from, socket(), follow);
    if (refusal !== null) end.refused.push(refusal);
  };
  edgeSocket = new PacketSocket({
    family: 4,
    onPacket: (packet, from) => receiveAt(edge, () => edgeSocket, true)(packet, from as never),
    report: rethrow,
  });
  clientSocket = new PacketSocket({
    family: 4,
    onPacket: (packet, from) => receiveAt(client, () => clientSocket, false)(packet, from as never),
    report: rethrow,
  });
  const target = await edgeSocket.bind('127.0.0.1', 0);
  relay = await startUdpRelay({ target: { host: '127.0.0.1', port: target.port } });
  await clientSocket.connect({ address: relay.host, port: relay.port });
  client.path.route = { socket: clientSocket };
  closing = [() => edgeSocket.close(), () => clientSocket.close(), () => relay.close()];
});

afterEach(() => {
  for (const close of closing) close();
});

const hello = Buffer.from('..hello..');

/** The edge knows where the client is. */
const meet = async (): Promise<void> => {
  client.path.ping();
  await eventually(() => expect(client.told).toContain('answered after 0'));
  client.told.length = 0;
};

describe('datagrams', () => {
  it('go both ways, as parts of larger memory', async () => {
    await meet();
    expect(client.path.send(7, hello, 2, 7)).toBe(true);
    await eventually(() => expect(edge.told).toEqual(['7: hello']));
    expect(edge.path.send(8, hello, 2, 4)).toBe(true);
    await eventually(() => expect(client.told).toEqual(['8: he']));
    expect(client.path.lastSentAt).toBe(1000);
  });

  it('the edge sends nothing before the client has shown where it is', () => {
    expect(edge.path.send(7, hello, 0, 9)).toBe(false);
    edge.path.ping();
    expect(edge.path.route).toBeNull();
  });
});

describe('PING and PONG', () => {
  it('both ends measure, and none answers with more than it was asked with', async () => {
    await meet();
    edge.path.ping();
    await eventually(() => expect(edge.told).toEqual(['answered after 0']));
    const sizes = new Set(arrivals.map(({ packet }) => packet.length));
    expect(sizes.size).toBe(1);
  });

  it('an answer counts once, and only when it was asked for', async () => {
    relay.delayMs = 1;
    client.path.ping();
    now = 1040;
    await eventually(() => expect(client.told).toEqual(['answered after 40']));
    const pong = arrivals.at(-1)?.packet as Buffer;
    expect(pong[0]).toBe(SEALED_KIND.PONG);
    expect(client.path.receive(pong, {} as never, clientSocket, false)).toBe('replayed');
    expect(client.told.length).toBe(1);
  });

  it('who has left says so', async () => {
    await meet();
    edge.path.ping('left');
    await eventually(() => expect(client.told).toEqual(['left']));
  });

  it('are answered so many times a second and not more often', async () => {
    const most = 2 * MUX_LIMITS.PATH_PINGS_ANSWERED_PER_SECOND;
    for (let i = 0; i < most + 20; i += 1) {
      client.path.ping();
      if (i % 20 === 19) await eventually(() => expect(edge.path.route).not.toBeNull());
    }
    const answers = (): number => arrivals.filter(({ packet }) => packet[0] === SEALED_KIND.PONG).length;
    await eventually(() => expect(arrivals.length).toBe(2 * most + 20));
    expect(answers()).toBe(most);
    now += 1000;
    client.path.ping();
    await eventually(() => expect(answers()).toBe(most + 1));
  });
});

describe('addresses', () => {
  it('the newest authenticated one is where the edge sends', async () => {
    await meet();
    const before = edge.path.route?.to?.port;
    relay.changeAddresses();
    client.path.send(1, hello, 0, 9);
    await eventually(() => expect(edge.told.length).toBe(1));
    expect(edge.path.route?.to?.port).not.toBe(before);
    edge.path.send(2, hello, 0, 9);
    await eventually(() => expect(client.told).toEqual(['2: ..hello..']));
  });

  it('neither a replay, nor an old packet that comes late, nor a stranger moves it', async () => {
    await meet();
    relay.block = 'to-target';
    client.path.send(1, Buffer.from('late'), 0, 4);
    await eventually(() => expect(relay.sent.length).toBe(2));
    relay.block = 'nothing';
    client.path.send(1, hello, 0, 9);
    await eventually(() => expect(edge.told.length).toBe(1));
    const route = edge.path.route;
    // Replayed, then late but true, then forged: each from an address of its own.
    relay.inject(relay.sent[0] as Buffer);
    relay.inject(relay.sent[1] as Buffer);
    const forged = Buffer.from(relay.sent[2] as Buffer);
    forged[15] = 0xff;
    relay.inject(forged);
    await eventually(() => expect(arrivals.length).toBe(6));
    expect(edge.refused).toEqual(['replayed', 'forged']);
    expect(edge.told).toEqual(['1: ..hello..', '1: late']);
    expect(edge.path.route).toBe(route);
  });
});

it('nothing that was not sealed is answered, and what has no end on this path is dropped', async () => {
  await meet();
  const sealed = edge.path.sealing.sealed;
  for (let i = 0; i < 50; i += 1) relay.inject(Buffer.concat([Buffer.from([i % 7]), id, randomBytes(i)]));
  await eventually(() => expect(edge.refused.length).toBe(50));
  expect(edge.path.sealing.sealed).toBe(sealed);
  clientSocket.send(client.path.sealing, SEALED_KIND.PROBE, Buffer.alloc(8));
  clientSocket.send(client.path.sealing, SEALED_KIND.DATAGRAM, Buffer.alloc(3));
  clientSocket.send(client.path.sealing, SEALED_KIND.PING, Buffer.alloc(8));
  await eventually(() => expect(edge.refused.length).toBe(53));
  expect(new Set(edge.refused.slice(50))).toEqual(new Set(['malformed']));
});
