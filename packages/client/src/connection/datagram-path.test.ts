import { randomBytes } from 'node:crypto';
import { type DatagramWay, MuxSession, PacketSocket, processBudget, UdpPath } from '@tunnel/mux';
import { CAPABILITIES, type MessageOf } from '@tunnel/protocol';
import { eventually, FakeClock, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { DatagramPath, OWN_ADDRESSES_EVERY_MS } from './datagram-path.ts';

let clock: FakeClock;
let mux: MuxSession;
let path: DatagramPath;
let ways: DatagramWay[];
let addresses: string;
let edgeSocket: PacketSocket;
let edgePort: number;
/** The edge's ends of the datagram paths, by path id. */
let edgeEnds: Map<string, UdpPath>;
/** Number of packets received by the edge, by source port. */
let comers: Map<number, number>;
let isBlocked: boolean;

beforeEach(async () => {
  clock = new FakeClock();
  [ways, addresses, edgeEnds, comers, isBlocked] = [[], '192.0.2.1', new Map(), new Map(), false];
  edgeSocket = new PacketSocket({
    family: 4,
    report: rethrow,
    onPacket: (packet, from) => {
      comers.set(from.port, (comers.get(from.port) ?? 0) + 1);
      if (!isBlocked) edgeEnds.get(packet.toString('hex', 1, 9))?.receive(packet, from, edgeSocket);
    },
  });
  edgePort = (await edgeSocket.bind('127.0.0.1', 0)).port;
  const handlers = { onCarrierLost: () => {}, report: rethrow };
  mux = new MuxSession({ role: 'client', budget: processBudget(), clock, capabilities: CAPABILITIES, handlers });
  path = new DatagramPath({
    mux,
    address: '127.0.0.1',
    clock,
    report: rethrow,
    onWay: (way) => ways.push(way),
    ownAddresses: () => addresses,
  });
});

afterEach(() => {
  path.stop();
  for (const end of edgeEnds.values()) end.stop();
  edgeSocket.close();
  expect(clock.pendingTimers).toBe(0);
});

type Offer = MessageOf<'DatagramPath'>;

/** Creates a DatagramPath message of an edge with a UDP path, and the edge's end of that path. */
const makeOffer = (): Offer => {
  const id = randomBytes(8);
  const toEdge = randomBytes(32);
  const toClient = randomBytes(32);
  const keys = { id, sealing: toClient, opening: toEdge };
  const end = new UdpPath({ keys, follows: true, clock, onDatagram: () => true, report: rethrow });
  edgeEnds.set(id.toString('hex'), end);
  const sealed = {
    id: id.toString('hex'),
    key_to_edge: toEdge.toString('base64url'),
    key_to_client: toClient.toString('base64url'),
  };
  return { type: 'DatagramPath', ports: [edgePort, edgePort], path: sealed, observe: null };
};

const reasons = (): string[] => ways.map(({ path: way, reason }) => `${way} ${reason}`.trim());
const newestPort = (): number => [...comers.keys()].at(-1) as number;

const bringUp = async (): Promise<void> => {
  path.offered(makeOffer());
  path.want();
  await clock.advance(50);
  await eventually(() => expect(reasons()).toEqual(['carrier probing', 'udp']));
};

it('without a udp tunnel the client opens no datagram path and reports none', async () => {
  path.offered(makeOffer());
  await clock.advance(60_000);
  expect([ways, comers.size, clock.pendingTimers, mux.datagramPath]).toEqual([[], 0, 0, null]);
});

it.each([
  ['no path', (): Offer => ({ ...makeOffer(), path: null })],
  ['nothing at all', () => null],
])('the datagram path is reported as off when the edge offers %s', async (_, make) => {
  const offer = make();
  if (offer !== null) path.offered(offer);
  path.want();
  expect(ways).toEqual([{ path: 'carrier', reason: 'off' }]);
  expect([mux.datagramPath, clock.pendingTimers]).toEqual([null, 0]);
});

it('the first udp tunnel starts the probing, and a proven path is used', async () => {
  await bringUp();
  expect(mux.datagramPath?.isUp).toBe(true);
  path.want();
  expect(reasons()).toEqual(['carrier probing', 'udp']);
});

it('stopping a session ends its datagram path without an event', async () => {
  await bringUp();
  path.stop();
  expect([mux.datagramPath, reasons()]).toEqual([null, ['carrier probing', 'udp']]);
  path.offered(makeOffer());
  path.want();
  expect(mux.datagramPath).toBeNull();
});

it('new keys from the edge replace the current datagram path', async () => {
  await bringUp();
  const before = mux.datagramPath;
  path.offered(makeOffer());
  await clock.advance(50);
  await eventually(() => expect(reasons()).toEqual(['carrier probing', 'udp', 'carrier probing', 'udp']));
  expect(mux.datagramPath).not.toBe(before);
});

it('a new address of the computer opens another socket at once while the path stays up', async () => {
  await bringUp();
  const before = newestPort();
  addresses = '198.51.100.7';
  await clock.advance(OWN_ADDRESSES_EVERY_MS);
  await clock.advance(100);
  await eventually(() => expect(newestPort()).not.toBe(before));
  expect([mux.datagramPath?.isUp, reasons()]).toEqual([true, ['carrier probing', 'udp']]);
});

it('a new address of the computer ends the pause after a failed path and retries at once', async () => {
  isBlocked = true;
  path.offered(makeOffer());
  path.want();
  await clock.advance(9100);
  expect(reasons()).toEqual(['carrier probing', 'carrier udp-blocked']);
  await clock.advance(5000 + 9100);
  isBlocked = false;
  addresses = '198.51.100.7';
  await clock.advance(OWN_ADDRESSES_EVERY_MS);
  await clock.advance(50);
  await eventually(() => expect(reasons().at(-1)).toBe('udp'));
});

it('each new attempt at a datagram path uses a new socket', async () => {
  isBlocked = true;
  path.offered(makeOffer());
  path.want();
  await clock.advance(9100);
  await eventually(() => expect(comers.size).toBe(1));
  await clock.advance(5000);
  await eventually(async () => {
    await clock.advance(50);
    expect(comers.size).toBe(2);
  });
});

it('every socket uses the same sealing counter to ask the edge for a public address', () => {
  expect(path.observer).toBeNull();
  const offer = makeOffer();
  path.offered({ ...offer, observe: offer.path });
  const { observer } = path;
  expect(observer).toMatchObject({ host: '127.0.0.1', ports: [edgePort, edgePort] });
  expect(path.observer?.sealing).toBe(observer?.sealing);
});
