import { randomBytes } from 'node:crypto';
import { SEALED_KIND } from '@tunnel/mux';
import { FakeClock, MemoryNetwork, rethrow } from '@tunnel/testkit';
import { beforeEach, describe, expect, it } from 'vitest';
import type { PeerAddress, PeerSocket } from '../transport/peer-transport.ts';
import { PEER_PROBED_ADDRESSES_MAX, ProbePath } from './probe-path.ts';

interface End {
  readonly path: ProbePath;
  readonly socket: PeerSocket;
  readonly address: PeerAddress;
  readonly heard: string[];
  readonly packets: Buffer[];
}

let clock: FakeClock;
let network: MemoryNetwork;
let a: End;
let b: End;

const makeEnd = (host: string, sealing: Buffer, opening: Buffer): End => {
  const [heard, packets]: [string[], Buffer[]] = [[], []];
  const socket = network.transport(host).open({
    onDatagram: (bytes, from) => {
      packets.push(bytes);
      path.receive(bytes, from);
    },
    abandon: rethrow,
  });
  const path: ProbePath = new ProbePath(
    socket,
    { id: Buffer.alloc(8, 7), sealing, opening },
    {
      onAnswered: () => heard.push('answer'),
      onMoved: () => heard.push('moved'),
      onDatagram: (flow, bytes, start, end) => heard.push(`${flow}: ${bytes.toString('utf8', start, end)}`),
      onUsed: () => {},
    },
    () => clock.monotonic(),
  );
  return { path, socket, heard, packets, address: { host, port: socket.port } };
};

beforeEach(() => {
  clock = new FakeClock();
  network = new MemoryNetwork(clock);
  network.delayMs = 5;
  const one = randomBytes(32);
  const other = randomBytes(32);
  a = makeEnd('10.0.0.1', one, other);
  b = makeEnd('10.0.0.2', other, one);
});

describe('probes between peers', () => {
  it('prove a path in both directions and measure the round trip', async () => {
    a.path.tryAt([{ host: '10.0.0.9', port: 1 }, b.address]);
    a.path.probeAll();
    await clock.advance(20);
    expect(a.heard).toEqual(['answer']);
    expect([a.path.remote, a.path.rttMs]).toEqual([b.address, 10]);
  });

  it('add the address from which they arrive to the addresses to try', async () => {
    a.path.tryAt([b.address]);
    a.path.probeAll();
    await clock.advance(20);
    expect(b.heard).toEqual(['answer']);
    expect(b.path.remote).toEqual(a.address);
  });

  it('have the same size as their responses', async () => {
    a.path.tryAt([b.address]);
    a.path.probeAll();
    await clock.advance(20);
    const sizes = [...a.packets, ...b.packets].map(({ length }) => length);
    expect(new Set(sizes).size).toBe(1);
  });

  it('are ignored and not answered when replayed, forged, truncated or sent by a stranger', async () => {
    a.path.tryAt([b.address]);
    a.path.probeAll();
    await clock.advance(20);
    const heard = b.heard.length;
    const packets = a.packets.length;
    const probe = b.packets[0] as Buffer;
    const stranger = { host: '10.0.0.66', port: 6 };
    expect(b.path.receive(probe, stranger)).toBe(false);
    for (let at = 0; at < probe.length; at += 1) {
      const altered = Buffer.from(probe);
      altered[at] = (altered[at] as number) ^ 0x10;
      expect(b.path.receive(altered, stranger)).toBe(false);
      expect(b.path.receive(probe.subarray(0, at), stranger)).toBe(false);
    }
    for (let length = 0; length < 200; length += 1) expect(b.path.receive(randomBytes(length), stranger)).toBe(false);
    await clock.advance(20);
    expect([b.heard.length, a.packets.length]).toEqual([heard, packets]);
    expect(b.path.remote).toEqual(a.address);
  });

  it('report that the peer has moved when a ping arrives from a new address', async () => {
    a.path.tryAt([b.address]);
    a.path.probeAll();
    await clock.advance(20);
    b.path.isUp = true;
    a.path.ping();
    await clock.advance(20);
    expect(b.heard).not.toContain('moved');
    // The same ping arrives from the address of another NAT.
    network.deliver = (bytes) => void b.path.receive(bytes, { host: '10.0.0.77', port: 7 });
    a.path.ping();
    expect(b.heard).toContain('moved');
  });

  it('go to a limited number of addresses, however many are offered', async () => {
    a.path.tryAt(Array.from({ length: 100 }, (_, i) => ({ host: `10.1.0.${i}`, port: 1 })));
    let sent = 0;
    network.deliver = () => {
      sent += 1;
    };
    a.path.probeAll();
    expect(sent).toBe(PEER_PROBED_ADDRESSES_MAX);
  });
});

describe('datagrams between peers', () => {
  it('travel both ways with their flow number once the path is proven', async () => {
    expect(a.path.send(7, Buffer.from('..early..'), 2, 7)).toBe(false);
    a.path.tryAt([b.address]);
    a.path.probeAll();
    await clock.advance(20);
    expect(a.path.send(7, Buffer.from('..hello..'), 2, 7)).toBe(true);
    expect(a.path.send(8, Buffer.alloc(0), 0, 0)).toBe(true);
    await clock.advance(20);
    expect(b.heard.slice(-2)).toEqual(['7: hello', '8: ']);
    expect(b.packets.at(-1)?.[0]).toBe(SEALED_KIND.DATAGRAM);
    expect(a.path.datagramBytes).toBe(b.path.datagramBytes);
  });
});
