import type { RemoteInfo } from 'node:dgram';
import { eventually, rethrow } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { MUX_LIMITS } from '../limits.ts';
import type { ReportInternalError } from '../loop/guard.ts';
import { PacketSocket } from './packet-socket.ts';
import { OpeningKey, SEALED_KIND, SealingKey } from './sealed-datagram.ts';

const ID = Buffer.alloc(8, 7);
const KEY = Buffer.alloc(32, 9);
const PACKETS = 300;
const open: PacketSocket[] = [];

const makeSocket = (
  onPacket: (packet: Buffer, from: RemoteInfo) => void = () => {},
  report: ReportInternalError = rethrow,
): PacketSocket => {
  const socket = new PacketSocket({ family: 4, onPacket, report });
  open.push(socket);
  return socket;
};

afterEach(() => {
  for (const socket of open.splice(0)) socket.close();
});

it('a sealed packet arrives whole at the other socket, although packets share their memory', async () => {
  const opening = new OpeningKey(ID, KEY);
  const bodies: (Buffer | string)[] = [];
  const receiver = makeSocket((packet) => bodies.push(opening.open(packet)));
  const target = await receiver.bind('127.0.0.1', 0);
  const sender = makeSocket();
  await sender.connect(target);
  const key = new SealingKey(ID, KEY);
  for (let i = 0; i < PACKETS; i += 1) {
    expect(sender.send(key, SEALED_KIND.PROBE, Buffer.from(`body ${i}`))).toBe(true);
    if (i % 50 === 0) await eventually(() => expect(bodies.length).toBe(i + 1));
  }
  await eventually(() => expect(bodies.length).toBe(PACKETS));
  expect(bodies.map(String)).toEqual(bodies.map((_, i) => `body ${i}`));
});

it('a datagram of the largest payload is sent, and a longer one is dropped', async () => {
  const opening = new OpeningKey(ID, KEY);
  const bodies: Buffer[] = [];
  const receiver = makeSocket((packet) => bodies.push(opening.open(packet) as Buffer));
  const to = await receiver.bind('127.0.0.1', 0);
  const sender = makeSocket();
  await sender.bind('127.0.0.1', 0);
  const key = new SealingKey(ID, KEY);
  const payload = Buffer.alloc(2000, 1);
  expect(sender.sendDatagram(key, 0xfffffffe, payload, 100, 100 + MUX_LIMITS.DATAGRAM_PATH_PAYLOAD_BYTES, to)).toBe(
    true,
  );
  expect(sender.sendDatagram(key, 5, payload, 0, 0, to)).toBe(true);
  expect(sender.send(key, SEALED_KIND.PROBE, payload, to)).toBe(false);
  await eventually(() => expect(bodies.length).toBe(2));
  expect(bodies.map((body) => [body.readUInt32BE(0), body.length - 4])).toEqual([
    [0xfffffffe, MUX_LIMITS.DATAGRAM_PATH_PAYLOAD_BYTES],
    [5, 0],
  ]);
});

it('binding a port in use fails, and a closed socket sends nothing', async () => {
  const first = makeSocket();
  const { port } = await first.bind('127.0.0.1', 0);
  const second = makeSocket();
  await expect(second.bind('127.0.0.1', port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  first.close();
  first.close();
  const key = new SealingKey(ID, KEY);
  expect(first.send(key, SEALED_KIND.PROBE, Buffer.alloc(8), { address: '127.0.0.1', port })).toBe(false);
  expect(key.sealed).toBe(0);
});

it('a closed peer causes no error on the sending socket', async () => {
  const gone = makeSocket();
  const target = await gone.bind('127.0.0.1', 0);
  gone.close();
  const sender = makeSocket();
  await sender.connect(target);
  const key = new SealingKey(ID, KEY);
  for (let i = 0; i < 5; i += 1) {
    sender.send(key, SEALED_KIND.PROBE, Buffer.alloc(8));
    await new Promise(setImmediate);
  }
  // The ICMP errors have arrived by now, and the socket still works.
  expect(sender.hasRoom).toBe(true);
});

it('a dual-stack socket receives IPv4 packets and can respond to them', async ({ skip }) => {
  const key = new SealingKey(ID, KEY);
  const opening = new OpeningKey(ID, KEY);
  const both: PacketSocket = new PacketSocket({
    family: 6,
    onPacket: (_packet, from) => void both.send(key, SEALED_KIND.PONG, Buffer.from('back'), from),
    report: rethrow,
  });
  open.push(both);
  const bound = await both.bind('::', 0).catch(() => null);
  if (bound === null) return skip('this machine has no IPv6');
  const { port } = bound;
  const bodies: string[] = [];
  const caller = makeSocket((packet) => bodies.push(String(opening.open(packet))));
  await caller.connect({ address: '127.0.0.1', port });
  caller.send(new SealingKey(ID, KEY), SEALED_KIND.PING, Buffer.alloc(26));
  await eventually(() => expect(bodies).toEqual(['back']));
});

it('an error while handling one packet does not affect the next packet', async () => {
  const caught: string[] = [];
  const seen: string[] = [];
  const receiver = makeSocket(
    (packet) => {
      if (packet[0] === SEALED_KIND.PING) throw new Error('mine');
      seen.push('probe');
    },
    (_error, where) => caught.push(where),
  );
  const to = await receiver.bind('127.0.0.1', 0);
  const sender = makeSocket();
  await sender.connect(to);
  const key = new SealingKey(ID, KEY);
  sender.send(key, SEALED_KIND.PING, Buffer.alloc(8));
  sender.send(key, SEALED_KIND.PROBE, Buffer.alloc(8));
  await eventually(() => expect(seen).toEqual(['probe']));
  expect(caught).toEqual(['udp-path.message']);
});
