// Relay streams between two raw clients over real carriers: exact bytes in both directions, half-close, resets, slow readers, limits, and
// killed clients.

import type { MuxStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { deterministicChunks, eventually, FakeClock, hashOf, type RecordingReader } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { TunnelCounters } from '../backend/tunnel-counters.ts';
import { P2P_RELAYS_PER_PEER } from '../ingress/p2p/peer-relays.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { type ControlFixture, startControl } from './control.fixture.ts';
import { openRelay, RawPeer } from './raw-peers.fixture.ts';

const MB = 1024 * 1024;

let fixture: ControlFixture;
let reported: string[];
let publisher: RawPeer;
let subscriber: RawPeer;
let tunnelId: string;
let peerId: string;
beforeEach(async () => {
  reported = [];
  const reportRelay = (_: unknown, where: string): void => void reported.push(where);
  fixture = await startControl({ clock: new FakeClock(), connectionsPerTunnel: 2, reportRelay });
  await enterBoth();
});
afterEach(async () => {
  await fixture.stop();
  expect(reported).toEqual([]);
});

const enterBoth = async (): Promise<void> => {
  publisher = await RawPeer.enter(fixture.port, 'alice');
  subscriber = await RawPeer.enter(fixture.port, 'alice-2');
  tunnelId = (await publisher.publish()).tunnel_id;
  peerId = await subscriber.connect();
};

const relay = () => openRelay(subscriber, publisher, peerId);
const text = (word: string): [Buffer, number, number, boolean] => [Buffer.from(word), 0, word.length, false];
const counters = () => fixture.tunnels.get(tunnelId)?.counters;

/** Sends the given number of bytes as fast as the stream accepts them. */
const send = async (stream: MuxStream, reader: RecordingReader, bytes: number, seed: number): Promise<void> => {
  for (const chunk of deterministicChunks(bytes, seed)) {
    const { drains } = reader;
    if (stream.write(chunk, 0, chunk.length, false)) continue;
    while (reader.drains === drains) await new Promise(setImmediate);
  }
};

describe('a relay stream', () => {
  it('names its peer to the publisher, and carries bytes in both directions, counted once', async () => {
    const { near, far, nearReads, farReads, head } = await relay();
    const { clientAddr } = fixture.peers.of(tunnelId)[0] ?? {};
    expect(head).toEqual({ tunnelId, visitor: clientAddr, peerId });
    near.write(...text('question'));
    far.write(...text('answer'));
    await eventually(() => expect([farReads.bytes, nearReads.bytes]).toEqual([8, 6]));
    expect([farReads.digest(), nearReads.digest()]).toEqual([
      hashOf(Buffer.from('question')),
      hashOf(Buffer.from('answer')),
    ]);
    expect(fixture.peers.of(tunnelId)).toMatchObject([{ relayedBytes: 14 }]);
    expect(fixture.peers.totals).toMatchObject({ requests: 1, bytesToClient: 8, bytesToVisitor: 6 });
    // A join counts as one request, regardless of its number of streams.
    expect([counters()?.requests, counters()?.bytes, counters()?.openConnections]).toEqual([1, 14, 1]);
  });

  it('forwards a half-close, and ends when both sides have ended', async () => {
    const { near, far, nearReads, farReads } = await relay();
    near.end();
    await eventually(() => expect(farReads.ended).toBe(true));
    far.write(...text('still'));
    await eventually(() => expect(nearReads.bytes).toBe(5));
    expect(nearReads.ended).toBe(false);
    far.end();
    await eventually(() => expect(nearReads.ended).toBe(true));
    await eventually(() => expect([fixture.relays.connections, counters()?.openConnections]).toEqual([0, 0]));
  });

  it.each(['near', 'far'] as const)('forwards a reset of the %s end', async (side) => {
    const ends = await relay();
    ends[side].reset({ code: 'peer-reset', text: 'gone' });
    const other = side === 'near' ? ends.farReads : ends.nearReads;
    await eventually(() => expect(other.reset).toMatchObject({ code: 'peer-reset' }));
    expect(fixture.relays.connections).toBe(0);
  });

  it('carries 10 MB in each direction at the same time, byte for byte', async () => {
    const { near, far, nearReads, farReads } = await relay();
    await Promise.all([send(near, nearReads, 10 * MB, 1), send(far, farReads, 10 * MB, 2)]);
    await eventually(() => expect([farReads.bytes, nearReads.bytes]).toEqual([10 * MB, 10 * MB]));
    expect([farReads.digest(), nearReads.digest()]).toEqual([
      hashOf(deterministicChunks(10 * MB, 1)),
      hashOf(deterministicChunks(10 * MB, 2)),
    ]);
    expect(fixture.peers.of(tunnelId)[0]?.relayedBytes).toBe(20 * MB);
    expect(counters()?.bytes).toBe(20 * MB);
  });

  it('slows down the sender of a slow reader without slowing other streams', async () => {
    const slow = await relay();
    slow.farReads.stalled = true;
    const sending = send(slow.near, slow.nearReads, 10 * MB, 3);
    const other = await relay();
    other.near.write(...text('quick'));
    await eventually(() => expect(other.farReads.bytes).toBe(5));
    // Only the bytes that fit into the flow control windows have been sent.
    expect(fixture.peers.of(tunnelId)[0]?.relayedBytes).toBeLessThan(5 * MB);
    slow.farReads.goOn();
    await sending;
    await eventually(() => expect(slow.farReads.bytes).toBe(10 * MB));
    expect(slow.farReads.digest()).toBe(hashOf(deterministicChunks(10 * MB, 3)));
  });
});

describe('opening a relay stream', () => {
  const refusal = (opened: MuxStream | StreamReason): StreamReason => opened as StreamReason;

  it('is refused without a join of the session', async () => {
    expect(refusal(await subscriber.open('peer_none'))).toMatchObject({ code: 'unknown-tunnel' });
    expect(refusal(await subscriber.open(tunnelId))).toMatchObject({ code: 'unknown-tunnel' });
    expect(refusal(await publisher.open(peerId))).toMatchObject({ code: 'unknown-tunnel' });
  });

  it('is refused over the connection limit of the tunnel', async () => {
    await relay();
    const second = await relay();
    expect(refusal(await subscriber.open(peerId))).toMatchObject({ code: 'limit' });
    second.near.reset({ code: 'cancelled', text: '' });
    await eventually(() => expect(fixture.relays.connections).toBe(1));
    await relay();
  });

  it('is refused over the limit of one peer, leaving room for other peers of the tunnel', async () => {
    await fixture.stop();
    fixture = await startControl({ clock: new FakeClock() });
    await enterBoth();
    for (let n = 0; n < P2P_RELAYS_PER_PEER; n += 1) await relay();
    expect(await subscriber.open(peerId)).toMatchObject({ code: 'limit', text: expect.stringContaining('the peer') });
    peerId = await subscriber.connect();
    await relay();
  });

  it('is refused with the publisher’s reason', async () => {
    const opening = subscriber.open(peerId);
    (await publisher.taken()).stream.refuse({ code: 'limit', text: 'too many handshakes' });
    expect(await opening).toEqual({ code: 'limit', text: 'too many handshakes' });
    expect([fixture.relays.connections, counters()?.openConnections]).toEqual([0, 0]);
    expect(fixture.peers.totals.refused.get('limit')).toBe(1);
  });

  it('is refused while the publisher is away and while the edge drains', async () => {
    publisher.kill();
    await publisher.client.closed;
    await eventually(() => expect(fixture.tunnels.size).toBe(0));
    expect(refusal(await subscriber.open(peerId))).toMatchObject({ code: 'carrier-lost' });
    const back = await RawPeer.enter(fixture.port, 'alice', publisher.resume);
    await back.publish({ tunnel_id: tunnelId });
    await openRelay(subscriber, back, peerId);
    await fixture.relays.closeAll();
    expect(refusal(await subscriber.open(peerId))).toMatchObject({ code: 'shutting-down' });
    expect(fixture.relays.connections).toBe(1);
  });
});

describe('the end of a relay stream', () => {
  it.each(['near', 'far'] as const)('follows the end of the client at its %s end', async (side) => {
    const { nearReads, farReads } = await relay();
    (side === 'near' ? subscriber : publisher).kill();
    const other = side === 'near' ? farReads : nearReads;
    await eventually(() => expect(other.reset).not.toBeNull());
    await eventually(() => expect([fixture.relays.connections, counters()?.openConnections ?? 0]).toEqual([0, 0]));
  });

  it('follows a reset by the subscriber before the publisher has accepted', async () => {
    const opening = subscriber.mux.open(
      { tunnelId: peerId, visitor: '' },
      { onOpened: () => {}, onRefused: () => {}, abandon: () => {} },
    );
    const { stream } = await publisher.taken();
    opening?.reset({ code: 'cancelled', text: 'enough' });
    await eventually(() => expect(stream.state).toBe('closed'));
    expect([fixture.relays.connections, counters()?.openConnections]).toEqual([0, 0]);
  });

  it.each<[string, () => void]>([
    ['the subscriber’s departure', () => subscriber.client.send({ type: 'DisconnectPeer', peer_id: peerId })],
    ['the dismissal of its peer', () => void fixture.peers.dismiss(tunnelId, peerId)],
    [
      'the close of the tunnel',
      () => publisher.client.send({ type: 'UnregisterTunnel', request_id: 'u', tunnel_id: tunnelId }),
    ],
  ])('follows %s, even while the stream is opening', async (_, act) => {
    const { nearReads, farReads } = await relay();
    const opening = subscriber.open(peerId);
    await publisher.taken();
    act();
    await eventually(() => expect([nearReads.reset, farReads.reset]).not.toContain(null));
    expect(await opening).toMatchObject({ code: 'cancelled' });
    expect(fixture.relays.connections).toBe(0);
  });

  it('ends a drain, which waits for open relay streams', async () => {
    const { nearReads, farReads } = await relay();
    let isIdle = false;
    void fixture.relays.whenIdle().then(() => {
      isIdle = true;
    });
    await fixture.relays.closeAll();
    await new Promise(setImmediate);
    expect(isIdle).toBe(false);
    fixture.relays.resetConnections();
    await eventually(() =>
      expect([nearReads.reset?.code, farReads.reset?.code]).toEqual(['shutting-down', 'shutting-down']),
    );
    expect(isIdle).toBe(true);
  });

  it('follows an internal error while bytes pass, and the next stream on the same carriers works', async () => {
    const { near, nearReads, farReads } = await relay();
    const tunnel = fixture.tunnels.get(tunnelId);
    const addBytes = vi.spyOn(tunnel?.counters as TunnelCounters, 'addBytes').mockImplementationOnce(() => {
      throw new Error('a mistake');
    });
    near.write(...text('oops'));
    await eventually(() => expect([nearReads.reset, farReads.reset]).not.toContain(null));
    expect(reported.splice(0)).toEqual(['stream.data']);
    addBytes.mockRestore();
    await eventually(() => expect([fixture.relays.connections, counters()?.openConnections]).toEqual([0, 0]));
    const next = await relay();
    next.near.write(...text('well'));
    await eventually(() => expect(next.farReads.bytes).toBe(4));
  });

  it('follows an internal error while opening, and the next stream works', async () => {
    const tunnel = fixture.tunnels.get(tunnelId) as Tunnel;
    const open = vi.spyOn(tunnel.upstream, 'open').mockImplementationOnce(() => {
      throw new Error('a mistake');
    });
    expect(await subscriber.open(peerId)).toMatchObject({ code: 'cancelled' });
    open.mockRestore();
    expect(reported.splice(0)).toEqual(['relay.open']);
    expect([fixture.relays.connections, counters()?.openConnections]).toEqual([0, 0]);
    await relay();
  });

  it('does not follow the loss of a control connection: the stream’s carriers stay open', async () => {
    const { near, farReads } = await relay();
    publisher.client.ws.terminate();
    await publisher.client.closed;
    near.write(...text('still'));
    await eventually(() => expect(farReads.bytes).toBe(5));
    expect(fixture.peers.of(tunnelId)[0]?.relayedBytes).toBe(5);
  });
});
