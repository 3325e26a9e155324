import { setImmediate as nextTurn } from 'node:timers/promises';
import type { LeasedEndpoint, Owner, Transport } from '@tunnel/rules/tunnels';
import { FakeClock } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { quietJoins } from '../ingress/p2p/peer-joins.fixture.ts';
import { EndpointRegistry, NameRegistry, PortRegistry } from './endpoints.ts';
import type { WantedLease } from './registration.rules.ts';

const OWNER: Owner = { kind: 'account', accountId: 'alice' };
const ALICE = { owner: OWNER, groupKeyHash: null };

/** A port registry with simulated listeners. Closing a listener takes until letGo() is called. */
const setUp = (options: { readonly to?: number; readonly outside?: readonly number[] } = {}) => {
  const clock = new FakeClock();
  const open = new Set<number>();
  const outside = new Set(options.outside ?? []);
  const closing: (() => void)[] = [];
  const listeners = {
    listen: async (port: number) => {
      if (open.has(port) || outside.has(port)) return 'taken' as const;
      open.add(port);
      return 'listening' as const;
    },
    close: (port: number) =>
      new Promise<void>((resolve) => {
        closing.push(() => {
          open.delete(port);
          resolve();
        });
      }),
  };
  const pool = new PortRegistry({
    rangeKey: 'tcp_port_range',
    range: { from: 1, to: options.to ?? 3 },
    accountShare: 1,
    listeners,
    clock,
    random: () => 0,
  });
  const letGo = (): void => {
    for (const finish of closing.splice(0)) finish();
  };
  return { clock, open, outside, pool, letGo };
};

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'opened',
    (error: { code: string }) => error.code,
  );

describe('opening a port', () => {
  it('skips ports of other programs, and tries them again after 10 s', async () => {
    const { pool, clock, outside } = setUp({ outside: [1, 2] });
    expect(await pool.open('a', { kind: 'any' }, 'alice')).toBe(3);
    expect(await codeOf(pool.open('b', { kind: 'any' }, 'alice'))).toBe('TUNNEL_PORTS_EXHAUSTED');
    outside.clear();
    await clock.advance(10_000);
    expect([1, 2]).toContain(await pool.open('b', { kind: 'any' }, 'alice'));
  });

  it('takes another port if the preferred port is in use, but fails for an exact port in use', async () => {
    const { pool } = setUp({ outside: [2] });
    expect(await codeOf(pool.open('a', { kind: 'exact', port: 2 }, 'alice'))).toBe('TUNNEL_PORT_IN_USE');
    expect(await pool.open('a', { kind: 'preferred', port: 2 }, 'alice')).not.toBe(2);
  });
});

describe('releasing a port', () => {
  it('takes effect once its listener has closed', async () => {
    const { pool, letGo } = setUp({ to: 1 });
    await pool.open('a', { kind: 'any' }, 'alice');
    pool.close(1);
    pool.release(1, 'a');
    expect(await codeOf(pool.open('b', { kind: 'any' }, 'alice'))).toBe('TUNNEL_PORTS_EXHAUSTED');
    const waiting = pool.open('b', { kind: 'exact', port: 1 }, 'alice');
    letGo();
    expect(await waiting).toBe(1);
  });

  it('is awaited by a tunnel that returns to its own port', async () => {
    const { pool, open, letGo } = setUp({ to: 1 });
    await pool.open('a', { kind: 'any' }, 'alice');
    pool.close(1);
    pool.hold(1, 'a', 1000);
    const again = pool.open('a', { kind: 'preferred', port: 1 }, 'alice');
    letGo();
    expect(await again).toBe(1);
    expect(open.has(1)).toBe(true);
    expect(await codeOf(pool.open('b', { kind: 'any' }, 'alice'))).toBe('TUNNEL_PORTS_EXHAUSTED');
  });

  it('is reported once to listeners that keep ports open, unless the port has a new holder', async () => {
    const { pool, freed, clock } = keepingPorts();
    await pool.open('a', { kind: 'any' }, 'alice');
    pool.close(1);
    pool.hold(1, 'a', 1000);
    await nextTurn();
    expect(freed).toEqual([]);
    pool.release(1, 'a');
    await nextTurn();
    expect(freed).toEqual([1]);
    await pool.open('a', { kind: 'any' }, 'alice');
    pool.close(1);
    pool.hold(1, 'a', 1000);
    await clock.advance(1000);
    expect(await pool.open('b', { kind: 'any' }, 'alice')).toBe(1);
    pool.release(1, 'a');
    expect(freed).toEqual([1]);
  });

  it('is reported even if the hold expired and a search for another port removed it', async () => {
    const { pool, freed, clock } = keepingPorts(2);
    await pool.open('a', { kind: 'exact', port: 1 }, 'alice');
    pool.close(1);
    pool.hold(1, 'a', 1000);
    await clock.advance(1000);
    expect(await pool.open('b', { kind: 'exact', port: 2 }, 'alice')).toBe(2);
    pool.release(1, 'a');
    expect(freed).toEqual([1]);
  });

  it('never happens for a port withheld by the edge', async () => {
    const { pool } = setUp({ to: 2 });
    expect([pool.withhold(1), pool.withhold(1), pool.withhold(3)]).toEqual([true, true, false]);
    expect(await codeOf(pool.open('a', { kind: 'exact', port: 1 }, 'alice'))).toBe('TUNNEL_PORT_IN_USE');
    expect(await pool.open('a', { kind: 'any' }, 'alice')).toBe(2);
    expect(await codeOf(pool.open('b', { kind: 'any' }, 'alice'))).toBe('TUNNEL_PORTS_EXHAUSTED');
  });
});

/** A port registry with listeners that keep a port open until free() reports that no tunnel will return. */
const keepingPorts = (to = 1) => {
  const clock = new FakeClock();
  const freed: number[] = [];
  const listeners = {
    listen: async () => 'listening' as const,
    close: async () => {},
    free: (port: number) => void freed.push(port),
  };
  const range = { from: 1, to };
  return {
    clock,
    freed,
    pool: new PortRegistry({ rangeKey: 'udp_port_range', range, accountShare: 1, listeners, clock, random: () => 0 }),
  };
};

describe('tcp and udp', () => {
  /** An endpoint registry for tcp and udp, with a range of one port per transport. */
  const twoTransports = () => {
    const clock = new FakeClock();
    const calls: string[] = [];
    const listenersOf = (transport: string) => ({
      listen: async (port: number) => {
        calls.push(`listen ${transport} ${port}`);
        return 'listening' as const;
      },
      close: async (port: number) => void calls.push(`close ${transport} ${port}`),
    });
    const endpoints = new EndpointRegistry({
      listeners: { tcp: listenersOf('tcp'), udp: listenersOf('udp') } as Record<
        Transport,
        ReturnType<typeof listenersOf>
      >,
      portRanges: { tcp: { from: 1, to: 1 }, udp: { from: 1, to: 1 } } as Record<
        Transport,
        { from: number; to: number }
      >,
      accountShare: 1,
      names: new NameRegistry({ clock, random: () => 0 }),
      peerNames: quietJoins(clock),
      clock,
      random: () => 0,
    });
    const anyOf = (transport: string): WantedLease => ({
      kind: 'port',
      transport: transport as Transport,
      wanted: { kind: 'any' },
    });
    return { endpoints, calls, anyOf };
  };

  it('have separate port numbers, leases and listeners', async () => {
    const { endpoints, calls, anyOf } = twoTransports();
    const opened: LeasedEndpoint[] = [];
    for (const transport of ['tcp', 'udp']) opened.push(await endpoints.open('a', anyOf(transport), ALICE));
    expect(opened).toEqual([
      { kind: 'port', transport: 'tcp', port: 1 },
      { kind: 'port', transport: 'udp', port: 1 },
    ]);
    for (const transport of ['tcp', 'udp']) {
      expect(await codeOf(endpoints.open('b', anyOf(transport), ALICE))).toBe('TUNNEL_PORTS_EXHAUSTED');
    }
    const [, second] = opened as [LeasedEndpoint, LeasedEndpoint];
    endpoints.close(second);
    endpoints.release(second, 'a');
    await nextTurn();
    expect(await endpoints.open('b', anyOf('udp'), ALICE)).toEqual(second);
    expect(await codeOf(endpoints.open('b', anyOf('tcp'), ALICE))).toBe('TUNNEL_PORTS_EXHAUSTED');
    expect(calls).toEqual(['listen tcp 1', 'listen udp 1', 'close udp 1', 'listen udp 1']);
  });
});
