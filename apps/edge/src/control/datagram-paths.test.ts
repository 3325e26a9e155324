import { createCipheriv, randomBytes } from 'node:crypto';
import { createSocket, type RemoteInfo } from 'node:dgram';
import {
  decodePong,
  encodePing,
  MUX_LIMITS,
  OpeningKey,
  PacketSocket,
  type Pong,
  readSealedKind,
  SEALED_KIND,
  SealingKey,
  UdpPath,
} from '@tunnel/mux';
import { CAPABILITIES, type MessageOf, PROTOCOL_VERSION, type SealedPath } from '@tunnel/protocol';
import { eventually, FakeClock, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ControlFixture, startControl } from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

let clock: FakeClock;
let fixture: ControlFixture;
let sockets: PacketSocket[];

beforeEach(() => {
  clock = new FakeClock();
  sockets = [];
});
afterEach(async () => {
  for (const socket of sockets) socket.close();
  await fixture.stop();
});

interface Entered {
  readonly client: RawClient;
  readonly offer: MessageOf<'DatagramPath'>;
  readonly claim: { readonly session_id: string; readonly secret: string };
}

const enter = async (claim?: Entered['claim'], capabilities = CAPABILITIES): Promise<Entered> => {
  const client = await RawClient.connect(fixture.port);
  const auth = { type: 'Auth', versions: [PROTOCOL_VERSION], token: 'alice', agent: 'raw', capabilities };
  client.send({ ...auth, ...(claim === undefined ? {} : { resume: claim }) });
  const welcome = await client.next('AuthOk');
  const offer = await client.next('DatagramPath');
  return { client, offer, claim: { session_id: welcome.session_id, secret: welcome.resume_secret } };
};

const keysOf = ({ id, key_to_edge, key_to_client }: SealedPath) => ({
  id: Buffer.from(id, 'hex'),
  sealing: Buffer.from(key_to_edge, 'base64url'),
  opening: Buffer.from(key_to_client, 'base64url'),
});

const openSocket = async (onPacket: (packet: Buffer, from: RemoteInfo) => void): Promise<PacketSocket> => {
  const socket = new PacketSocket({ family: 4, onPacket, report: rethrow });
  sockets.push(socket);
  await socket.bind('127.0.0.1', 0);
  return socket;
};

/** Opens the client’s end of an offered path on a new socket. */
const openPath = async ({ offer }: Entered): Promise<UdpPath> => {
  const socket: PacketSocket = await openSocket((packet, from) => path.receive(packet, from, socket));
  const path = new UdpPath({
    keys: keysOf(offer.path as SealedPath),
    // The edge’s address never changes; the option is set because the socket is not connected.
    follows: true,
    clock,
    onDatagram: () => true,
    report: rethrow,
  });
  path.route = { socket, to: { address: '127.0.0.1', port: offer.ports[0] } };
  return path;
};

const sendRaw = (packet: Buffer, port: number): void => {
  const socket = createSocket('udp4');
  socket.send(packet, port, '127.0.0.1', () => socket.close());
};

/** Creates a PING with an arbitrary packet counter, which a SealingKey would reach only after many packets. */
const pingAt = (counter: number, offered: SealedPath): Buffer => {
  const { id, sealing } = keysOf(offered);
  const head = Buffer.concat([Buffer.from([SEALED_KIND.PING]), id, Buffer.alloc(8)]);
  head.writeBigUInt64BE(BigInt(counter), 9);
  const cipher = createCipheriv('aes-256-gcm', sealing, Buffer.concat([Buffer.alloc(4), head.subarray(9)]));
  cipher.setAAD(head);
  return Buffer.concat([head, cipher.update(encodePing(randomBytes(8))), cipher.final(), cipher.getAuthTag()]);
};

const wayOf = ({ claim }: Entered) => fixture.control.datagramPathOf({ sessionId: claim.session_id });
const dropped = () => fixture.control.datagramPaths.refused;

describe('the offer of a datagram path', () => {
  it('has two ports, a datagram path and an address observer, with separate ids and keys', async () => {
    fixture = await startControl({ clock, datagrams: { path: 'auto', direct: true } });
    const { offer } = await enter();
    const { path, observe } = offer as { path: SealedPath; observe: SealedPath };
    expect(new Set(offer.ports).size).toBe(2);
    const secrets = [path, observe].flatMap(({ id, key_to_edge, key_to_client }) => [id, key_to_edge, key_to_client]);
    expect(new Set(secrets).size).toBe(6);
  });

  it('is null for a path switched off, and is not sent to a client without the capability', async () => {
    fixture = await startControl({ clock, datagrams: { path: 'carrier', direct: true } });
    expect((await enter()).offer).toMatchObject({ path: null, observe: { id: expect.any(String) } });
    const { client } = await RawClient.enter(fixture.port, 'alice');
    client.send({ type: 'Ping', id: 1 });
    await client.next('Pong');
    expect(client.heard).toEqual([]);
  });

  it('is not sent by an edge without datagram ports, and the path is reported as off', async () => {
    fixture = await startControl({ clock });
    const { client, welcome } = await RawClient.enter(fixture.port, 'alice');
    expect(fixture.control.datagramPathOf({ sessionId: welcome.session_id })).toEqual({
      path: 'carrier',
      reason: 'off',
    });
    client.ws.close();
  });
});

describe('a datagram path', () => {
  beforeEach(async () => {
    fixture = await startControl({ clock, datagrams: { path: 'auto', direct: true } });
  });

  it('is up at both ends once each end has heard the other', async () => {
    const entered = await enter();
    expect(wayOf(entered)).toEqual({ path: 'carrier', reason: 'probing' });
    const path = await openPath(entered);
    path.start();
    await eventually(() => expect([path.isUp, wayOf(entered)]).toEqual([true, { path: 'udp', reason: '' }]));
  });

  it('ends with its connection: a resume issues new keys, and packets with the old keys are dropped', async () => {
    const entered = await enter();
    const path = await openPath(entered);
    path.start();
    await eventually(() => expect(wayOf(entered).path).toBe('udp'));
    const back = await enter(entered.claim);
    expect(back.offer.path?.id).not.toBe(entered.offer.path?.id);
    expect(back.offer.path?.key_to_edge).not.toBe(entered.offer.path?.key_to_edge);
    expect(wayOf(back)).toEqual({ path: 'carrier', reason: 'probing' });
    const before = dropped()['unknown-path'] as number;
    path.send(1, Buffer.from('x'), 0, 1);
    await eventually(() => expect(dropped()['unknown-path']).toBeGreaterThan(before));
    const fresh = await openPath(back);
    fresh.start();
    await eventually(() => expect([fresh.isUp, wayOf(back).path]).toEqual([true, 'udp']));
  });

  it('is removed when its client is lost', async () => {
    const entered = await enter();
    const path = await openPath(entered);
    path.start();
    await eventually(() => expect(wayOf(entered).path).toBe('udp'));
    entered.client.ws.terminate();
    await eventually(() => expect(wayOf(entered)).toEqual({ path: 'carrier', reason: 'probing' }));
    path.send(1, Buffer.from('x'), 0, 1);
    await eventually(() => expect(dropped()['unknown-path']).toBeGreaterThan(0));
  });

  it('accepts a packet on either port and responds from the same port', async () => {
    const entered = await enter();
    const path = await openPath(entered);
    path.start();
    await eventually(() => expect(wayOf(entered).path).toBe('udp'));
    const answers: number[] = [];
    const { sealing, opening } = path;
    const socket = await openSocket((packet, from) => {
      if (typeof opening.open(packet) !== 'string') answers.push(from.port);
    });
    const to = { address: '127.0.0.1', port: entered.offer.ports[1] };
    socket.send(sealing, SEALED_KIND.PING, encodePing(randomBytes(8)), to);
    await eventually(() => expect(answers).toEqual([entered.offer.ports[1]]));
  });

  it('counts datagrams without an open flow, and gets new keys before the packet counter runs out', async () => {
    const entered = await enter();
    const path = await openPath(entered);
    path.start();
    await eventually(() => expect(wayOf(entered).path).toBe('udp'));
    path.send(1, Buffer.from('x'), 0, 1);
    await eventually(() => expect(fixture.control.datagramPaths.unopened).toBe(1));
    // A counter far ahead, as after days of traffic.
    sendRaw(
      pingAt(MUX_LIMITS.SEALED_PACKETS_PER_KEY / 2 + 1, entered.offer.path as SealedPath),
      entered.offer.ports[0],
    );
    const renewed = await entered.client.next('DatagramPath');
    expect(renewed.path?.id).not.toBe(entered.offer.path?.id);
    const fresh = await openPath({ ...entered, offer: renewed });
    fresh.start();
    await eventually(() => expect([fresh.isUp, wayOf(entered).path]).toEqual([true, 'udp']));
  });
});

describe('the address of a client as seen by the edge', () => {
  const observed = async (entered: Entered, port: number): Promise<Pong & { readonly from: number }> => {
    const { id, sealing, opening } = keysOf(entered.offer.observe as SealedPath);
    const seals = (entered as { seals?: SealingKey }).seals ?? new SealingKey(id, sealing);
    Object.assign(entered, { seals });
    const open = new OpeningKey(id, opening);
    const pongs: (Pong & { from: number })[] = [];
    const socket = await openSocket((packet) => {
      const body = open.open(packet);
      const pong = typeof body === 'string' ? null : decodePong(body);
      if (readSealedKind(packet) === SEALED_KIND.PONG && pong !== null) pongs.push({ ...pong, from: port });
    });
    socket.send(seals, SEALED_KIND.PING, encodePing(randomBytes(8)), { address: '127.0.0.1', port });
    await eventually(() => expect(pongs.length).toBe(1));
    return pongs[0] as Pong & { from: number };
  };

  it('is reported per socket on either port, without affecting the datagram path', async () => {
    fixture = await startControl({ clock, datagrams: { path: 'auto', direct: true } });
    const entered = await enter();
    const path = await openPath(entered);
    path.start();
    await eventually(() => expect(wayOf(entered).path).toBe('udp'));
    const told = [await observed(entered, entered.offer.ports[0]), await observed(entered, entered.offer.ports[1])];
    expect(told.map(({ address }) => address)).toEqual(['127.0.0.1', '127.0.0.1']);
    expect(new Set(told.map(({ port }) => port)).size).toBe(2);
    expect(path.isUp).toBe(true);
    await clock.advance(10_000);
    await eventually(() => expect(wayOf(entered)).toEqual({ path: 'udp', reason: '' }));
  });

  it('is reported only to PING packets; other packets are dropped', async () => {
    fixture = await startControl({ clock, datagrams: { direct: true } });
    const { offer } = await enter();
    const { id, sealing } = keysOf(offer.observe as SealedPath);
    const socket = await openSocket(() => {});
    const key = new SealingKey(id, sealing);
    const to = { address: '127.0.0.1', port: offer.ports[0] };
    for (const kind of [SEALED_KIND.DATAGRAM, SEALED_KIND.PONG, SEALED_KIND.PROBE]) {
      socket.send(key, kind, Buffer.alloc(26), to);
    }
    await eventually(() => expect(dropped()['malformed']).toBe(3));
  });
});

it('random packets on the datagram ports get no response, raise no error and open nothing', async () => {
  fixture = await startControl({ clock, datagrams: { path: 'auto', direct: true } });
  const { offer } = await enter();
  let answers = 0;
  const raw = createSocket('udp4', () => (answers += 1));
  const id = Buffer.from(offer.path?.id ?? '', 'hex');
  const total = (): number => Object.values(dropped()).reduce((sum, count) => sum + count, 0);
  for (let i = 1; i <= 600; i += 1) {
    const bytes = randomBytes(i % 90);
    // Every third packet starts with a valid kind and a valid path id.
    const packet = i % 3 === 0 ? Buffer.concat([Buffer.from([1 + (i % 5)]), id, bytes]) : bytes;
    raw.send(packet, offer.ports[0], '127.0.0.1');
    if (i % 50 === 0) await eventually(() => expect(total()).toBe(i));
  }
  expect(answers).toBe(0);
  raw.close();
  // A random counter exceeds the counters of any key, so the edge may classify the packet as replayed instead of forged.
  expect((dropped()['forged'] ?? 0) + (dropped()['replayed'] ?? 0)).toBeGreaterThan(50);
  expect(fixture.control.datagramPaths.unopened).toBe(0);
});
