// A common test suite for every PeerTransport: datagrams beside a reliable connection on the same socket.
import type { ByteDuplex } from '@tunnel/mux';
import { deterministicBytes, eventually, hashOf, RecordingReader, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { PeerAddress, PeerSocket, PeerTransport } from './peer-transport.ts';

const MiB = 1024 * 1024;

export interface TransportUnderTest {
  /** Two computers in the same network, with the addresses under which they reach each other. */
  readonly machines: readonly [Machine, Machine];
}

interface Machine {
  readonly transport: PeerTransport;
  readonly host: string;
}

interface End {
  readonly socket: PeerSocket;
  readonly address: PeerAddress;
  readonly heard: { readonly text: string; readonly from: PeerAddress }[];
}

export const peerTransportConformance = (begin: () => Promise<TransportUnderTest>): void => {
  let a: End;
  let b: End;

  const openEnd = ({ transport, host }: Machine): End => {
    const heard: End['heard'] = [];
    const socket = transport.open(
      { onDatagram: (bytes, from) => heard.push({ text: bytes.toString(), from }), abandon: rethrow },
      host,
    );
    return { socket, heard, address: { host, port: socket.port } };
  };

  beforeEach(async () => {
    const { machines } = await begin();
    a = openEnd(machines[0]);
    b = openEnd(machines[1]);
  });

  afterEach(() => {
    a.socket.close();
    b.socket.close();
  });

  const connected = (): [ByteDuplex, ByteDuplex] => [
    a.socket.connect({ own: 11, theirs: 22 }, b.address),
    b.socket.connect({ own: 22, theirs: 11 }, a.address),
  ];

  it('carries datagrams both ways, whole and with the address of the sender', async () => {
    const large = 'x'.repeat(1400);
    a.socket.send(Buffer.from('one'), b.address);
    a.socket.send(Buffer.from(large), b.address);
    b.socket.send(Buffer.from('back'), a.address);
    await eventually(() => expect(b.heard.length).toBe(2));
    expect(new Set(b.heard.map(({ text }) => text))).toEqual(new Set(['one', large]));
    expect(b.heard[0]?.from).toEqual(a.address);
    await eventually(() => expect(a.heard).toEqual([{ text: 'back', from: b.address }]));
    await eventually(() => expect(a.socket.queuedDatagrams).toBe(0));
  });

  it('ignores datagrams to a closed port or an unreachable address', async () => {
    a.socket.send(Buffer.from('lost'), { host: a.address.host, port: 9 });
    a.socket.send(Buffer.from('lost'), { host: '2001:db8::1', port: 9 });
    a.socket.send(Buffer.from('well'), b.address);
    await eventually(() => expect(b.heard.map(({ text }) => text)).toEqual(['well']));
  });

  it('carries bytes of a connection both ways, whole and in order, with half-close', async () => {
    const [one, two] = connected();
    const atOne = new RecordingReader(one);
    const atTwo = new RecordingReader(two);
    const bytes = Buffer.from(deterministicBytes(8 * MiB, 1));
    let flushed = false;
    for (let at = 0; at < bytes.length; at += 100_000)
      one.write(bytes, at, Math.min(bytes.length, at + 100_000), false);
    one.end(() => {
      flushed = true;
    });
    await eventually(() => expect(atTwo.ended).toBe(true));
    expect([atTwo.digest(), atTwo.reset]).toEqual([hashOf(bytes), null]);
    await eventually(() => expect([flushed, atOne.ended]).toEqual([true, false]));
    two.write(bytes, 0, 1 * MiB, false);
    two.end();
    await eventually(() => expect(atOne.ended).toBe(true));
    expect([atOne.digest(), atOne.reset]).toEqual([hashOf(bytes.subarray(0, 1 * MiB)), null]);
  });

  it('no longer needs the memory of a write once the writer may continue', async () => {
    const [one, two] = connected();
    const atTwo = new RecordingReader(two);
    const atOne = new RecordingReader(one);
    const block = Buffer.alloc(64 * 1024);
    const rounds = 40;
    const all = Buffer.concat(Array.from({ length: rounds }, (_, round) => Buffer.alloc(block.length, round)));
    for (let round = 0; round < rounds; round += 1) {
      block.fill(round);
      const drains = atOne.drains;
      if (!one.write(block, 0, block.length, true))
        await eventually(() => expect(atOne.drains).toBeGreaterThan(drains));
    }
    one.end();
    await eventually(() => expect(atTwo.ended).toBe(true));
    expect(atTwo.digest()).toBe(hashOf(all));
  });

  it('tells a fast writer to wait, and later to continue', async () => {
    const [one, two] = connected();
    const atOne = new RecordingReader(one);
    const atTwo = new RecordingReader(two);
    const bytes = Buffer.alloc(256 * 1024);
    let written = 0;
    while (one.write(bytes, 0, bytes.length, false) && written < 64 * MiB) written += bytes.length;
    expect(written).toBeLessThan(64 * MiB);
    await eventually(() => expect([atOne.drains, atTwo.bytes]).toEqual([1, written + bytes.length]));
  });

  it('delivers the rest and the end when a stalled reader continues', async () => {
    const [one, two] = connected();
    new RecordingReader(one);
    const atTwo = new RecordingReader(two);
    atTwo.stalled = true;
    const bytes = Buffer.from(deterministicBytes(2 * MiB, 2));
    for (let at = 0; at < bytes.length; at += 64 * 1024) one.write(bytes, at, at + 64 * 1024, false);
    one.end();
    await eventually(() => expect(atTwo.bytes).toBeGreaterThan(0));
    expect([atTwo.bytes < bytes.length, atTwo.ended]).toEqual([true, false]);
    await eventually(() => {
      atTwo.goOn();
      expect(atTwo.ended).toBe(true);
    });
    expect(atTwo.digest()).toBe(hashOf(bytes));
  });

  it('cuts a connection when a stalled reader exceeds the limit', async () => {
    const [one, two] = connected();
    const atOne = new RecordingReader(one);
    const atTwo = new RecordingReader(two);
    atTwo.stalled = true;
    const bytes = Buffer.alloc(1 * MiB);
    for (let i = 0; i < 16; i += 1) one.write(bytes, 0, bytes.length, false);
    await eventually(() => expect([atOne.reset, atTwo.reset]).not.toContain(null));
  });

  it('keeps early bytes for a peer that connects later', async () => {
    const one = a.socket.connect({ own: 11, theirs: 22 }, b.address);
    const atOne = new RecordingReader(one);
    one.write(Buffer.from('early'), 0, 5, false);
    a.socket.send(Buffer.from('datagram'), b.address);
    await eventually(() => expect(b.heard.length).toBe(1));
    const atTwo = new RecordingReader(b.socket.connect({ own: 22, theirs: 11 }, a.address));
    await eventually(() => expect(atTwo.bytes).toBe(5));
    expect([atOne.reset, b.heard.length]).toEqual([null, 1]);
  });

  it('reports a reset as a reset to the other side', async () => {
    const [one, two] = connected();
    const atOne = new RecordingReader(one);
    const atTwo = new RecordingReader(two);
    one.write(Buffer.from('x'), 0, 1, false);
    await eventually(() => expect(atTwo.bytes).toBe(1));
    one.reset({ code: 'cancelled', text: 'enough' });
    await eventually(() => expect(atTwo.reset?.code).toBe('peer-reset'));
    expect([atOne.reset, atTwo.ended]).toEqual([null, false]);
  });

  it('closes every connection of a closed socket without further events', async () => {
    const [one, two] = connected();
    const atOne = new RecordingReader(one);
    const atTwo = new RecordingReader(two);
    one.write(Buffer.from('x'), 0, 1, false);
    await eventually(() => expect(atTwo.bytes).toBe(1));
    a.socket.close();
    a.socket.send(Buffer.from('late'), b.address);
    b.socket.send(Buffer.from('late'), a.address);
    await eventually(() => expect(atTwo.reset).not.toBeNull());
    expect([atOne.reset, b.heard.length, a.heard.length]).toEqual([null, 0, 0]);
  });

  it('keeps connections on the same socket apart', async () => {
    const [one, two] = connected();
    const [, atTwo] = [new RecordingReader(one), new RecordingReader(two)];
    const other = a.socket.connect({ own: 12, theirs: 23 }, b.address);
    const atOther = new RecordingReader(b.socket.connect({ own: 23, theirs: 12 }, a.address));
    new RecordingReader(other);
    other.write(Buffer.from('other'), 0, 5, false);
    one.write(Buffer.from('one'), 0, 3, false);
    await eventually(() => expect([atTwo.bytes, atOther.bytes]).toEqual([3, 5]));
  });
};
