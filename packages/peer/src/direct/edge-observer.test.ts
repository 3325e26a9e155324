import { randomBytes } from 'node:crypto';
import { MUX_LIMITS } from '@tunnel/mux';
import { systemClock } from '@tunnel/runtime';
import { FakeClock, rethrow, startObservingPorts, startUserSpaceNat } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import type { PeerTransport } from '../transport/peer-transport.ts';
import { loadUdxTransport } from '../transport/udx-transport.ts';
import type { AddressQuery } from './candidates.ts';
import { edgeObserver, PEER_OBSERVE_MAX_MS, PEER_OBSERVE_PING_EVERY_MS, PEER_OBSERVE_PINGS } from './edge-observer.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const ask = async (
  behind: (transport: PeerTransport) => PeerTransport,
): Promise<{ query: AddressQuery; port: number }> => {
  const edge = await startObservingPorts();
  const udx = (await loadUdxTransport()) as PeerTransport;
  let query: AddressQuery | null = null;
  const onDatagram = (bytes: Buffer, from: { host: string; port: number }): void => void query?.onDatagram(bytes, from);
  const socket = behind(udx).open({ onDatagram, abandon: rethrow }, '127.0.0.1');
  closing.push(edge.close, () => socket.close());
  const observer = edgeObserver({ host: '127.0.0.1', ports: edge.ports, ...edge.clientKeys() }, systemClock);
  query = observer.ask((bytes, to) => socket.send(bytes, to));
  return { query, port: socket.port };
};

describe('the address that the edge observes for a socket', () => {
  it('is the own port, consistent, without a NAT', async () => {
    const { query, port } = await ask((transport) => transport);
    expect(await query.result).toEqual({ ports: 'consistent', addresses: [{ host: '127.0.0.1', port }] });
  });

  it.each([
    ['moderate', 'consistent', 1],
    ['strict', 'random', 2],
    ['blocked', 'none', 0],
  ] as const)('behind a %s NAT has ports: %s', async (kind, ports, count) => {
    const nat = await startUserSpaceNat(kind);
    closing.push(nat.close);
    const { query } = await ask((transport) => nat.behind(transport));
    const observed = await query.result;
    expect([observed.ports, observed.addresses.length]).toEqual([ports, count]);
    expect(new Set(observed.addresses.map(({ port }) => port))).toEqual(new Set(nat.outerPorts.slice(0, count)));
  });

  it('ignores invalid responses, and times out when the edge is silent', async () => {
    const edge = await startObservingPorts();
    closing.push(edge.close);
    const clock = new FakeClock();
    const sent: Buffer[] = [];
    const observer = edgeObserver({ host: '127.0.0.1', ports: edge.ports, ...edge.clientKeys() }, clock);
    const query = observer.ask((bytes) => void sent.push(bytes));
    const from = { host: '127.0.0.1', port: edge.ports[0] };
    for (let length = 0; length < 100; length += 1) {
      const bytes = randomBytes(length);
      if (length > 0) bytes[0] = 3;
      expect(query.onDatagram(bytes, from)).toBe(false);
    }
    await clock.advance(PEER_OBSERVE_PINGS * PEER_OBSERVE_PING_EVERY_MS);
    expect(await query.result).toEqual({ ports: 'none', addresses: [] });
    expect([sent.length, clock.pendingTimers]).toEqual([2 * PEER_OBSERVE_PINGS, 0]);
  });

  it('is requested at the rate that the edge answers, and every one of 100 sockets gets a turn', async () => {
    const edge = await startObservingPorts();
    closing.push(edge.close);
    const clock = new FakeClock();
    const observer = edgeObserver({ host: '127.0.0.1', ports: edge.ports, ...edge.clientKeys() }, clock);
    const sentAt: number[] = [];
    const queries = Array.from({ length: 100 }, () => observer.ask(() => void sentAt.push(clock.monotonic())));
    expect(sentAt.length).toBe(2 * MUX_LIMITS.PATH_PINGS_ANSWERED_PER_SECOND);
    await clock.advance(1000);
    expect(sentAt.length).toBeLessThanOrEqual(3 * MUX_LIMITS.PATH_PINGS_ANSWERED_PER_SECOND);
    await clock.advance(PEER_OBSERVE_MAX_MS);
    await Promise.all(queries.map(({ result }) => result));
    expect(clock.pendingTimers).toBe(0);
  });
});
