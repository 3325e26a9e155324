import { describe, expect, it } from 'vitest';
import { PortLeases } from './port-leases.ts';

const inOrder = (): number => 0;
const range = (): PortLeases => new PortLeases({ from: 20000, to: 20003 }, inOrder);
const ANY = { kind: 'any' } as const;

describe('leasing a port', () => {
  it('returns every port of the range once, then `exhausted`', () => {
    const leases = range();
    const ports = ['a', 'b', 'c', 'd'].map((owner) => leases.lease(owner, ANY, 0));
    expect(new Set(ports.map((answer) => answer.kind === 'leased' && answer.port))).toEqual(
      new Set([20000, 20001, 20002, 20003]),
    );
    expect(leases.lease('e', ANY, 0)).toEqual({ kind: 'exhausted' });
  });

  it('picks the port that has been unused the longest', () => {
    const leases = range();
    const next = (owner: string, now: number): number => {
      const answer = leases.lease(owner, ANY, now);
      return answer.kind === 'leased' ? answer.port : -1;
    };
    expect(['a', 'b', 'c'].map((owner) => next(owner, 0))).toEqual([20000, 20001, 20002]);
    leases.release(20001, 'b');
    leases.hold(20002, 'c', 50);
    leases.hold(20000, 'a', 40);
    // Port 20003 was never used. Port 20001 was released first; then the holds of ports 20000 and 20002 expired, in this order.
    expect(['d', 'e', 'f', 'g'].map((owner) => next(owner, 100))).toEqual([20003, 20001, 20000, 20002]);
  });

  it('starts at a random port, since a previous run may have used the first ports', () => {
    const first = (random: () => number) => new PortLeases({ from: 20000, to: 20003 }, random).lease('a', ANY, 0);
    const picks = [0, 0.25, 0.5, 0.75].map((random) => first(() => random));
    expect(new Set(picks.map((answer) => answer.kind === 'leased' && answer.port)).size).toBeGreaterThan(1);
  });

  it('never returns a port reserved for another account: refused by number, skipped otherwise', () => {
    const leases = range();
    const isOthers = (port: number): boolean => port !== 20002;
    const inUse = { kind: 'in-use', port: 20001 };
    expect(leases.lease('a', { kind: 'exact', port: 20001 }, 0, { isOthers })).toEqual(inUse);
    expect(leases.lease('a', { kind: 'preferred', port: 20001 }, 0, { isOthers })).toEqual({
      kind: 'leased',
      port: 20002,
    });
    expect(leases.lease('b', ANY, 0, { isOthers })).toEqual({ kind: 'exhausted' });
    expect(leases.lease('b', { kind: 'exact', port: 20001 }, 0)).toEqual({ kind: 'leased', port: 20001 });
  });

  it('by number is refused if the port is taken or outside of the range', () => {
    const leases = range();
    expect(leases.lease('a', { kind: 'exact', port: 20002 }, 0)).toEqual({ kind: 'leased', port: 20002 });
    expect(leases.lease('b', { kind: 'exact', port: 20002 }, 0)).toEqual({ kind: 'in-use', port: 20002 });
    expect(leases.lease('b', { kind: 'exact', port: 19999 }, 0)).toEqual({ kind: 'out-of-range', port: 19999 });
    expect(leases.lease('b', { kind: 'exact', port: 20001.5 }, 0).kind).toBe('out-of-range');
  });

  it('returns another port if the preferred one is taken or outside of the range', () => {
    const leases = range();
    leases.lease('a', { kind: 'preferred', port: 20002 }, 0);
    expect(leases.lease('b', { kind: 'preferred', port: 20002 }, 0)).toEqual({ kind: 'leased', port: 20000 });
    expect(leases.lease('c', { kind: 'preferred', port: 80 }, 0).kind).toBe('leased');
  });
});

describe('holding a port', () => {
  it('keeps it from others until the hold expires, and lets its owner lease it', () => {
    const leases = range();
    leases.lease('a', { kind: 'exact', port: 20001 }, 0);
    expect(leases.hold(20001, 'a', 30_000)).toBe(true);
    expect(leases.lease('b', { kind: 'exact', port: 20001 }, 29_999).kind).toBe('in-use');
    expect(leases.lease('a', { kind: 'exact', port: 20001 }, 29_999).kind).toBe('leased');
    expect(leases.useOf(20001, 99_000)).toMatchObject({ kind: 'leased', owner: 'a' });
  });

  it('ends automatically when the time has passed', () => {
    const leases = range();
    leases.lease('a', { kind: 'exact', port: 20001 }, 0);
    leases.hold(20001, 'a', 30_000);
    expect(leases.freeCount(29_999)).toBe(3);
    expect(leases.freeCount(30_000)).toBe(4);
  });
});

describe('releasing a port', () => {
  it('works only for its owner: a late release does not take the port from its next owner', () => {
    const leases = range();
    leases.lease('a', { kind: 'exact', port: 20001 }, 0);
    expect(leases.release(20001, 'a')).toBe(true);
    leases.lease('b', { kind: 'exact', port: 20001 }, 0);
    expect(leases.release(20001, 'a')).toBe(false);
    expect(leases.hold(20001, 'a', 1)).toBe(false);
    expect(leases.useOf(20001, 0)).toMatchObject({ kind: 'leased', owner: 'b' });
  });
});

describe('a port that another program uses', () => {
  it('is skipped for a while, but tried if requested by number', () => {
    const leases = new PortLeases({ from: 20000, to: 20000 }, inOrder);
    leases.lease('a', ANY, 0);
    expect(leases.markOutside(20000, 'a', 10_000)).toBe(true);
    expect(leases.lease('a', ANY, 9_999)).toEqual({ kind: 'exhausted' });
    expect(leases.lease('a', { kind: 'exact', port: 20000 }, 9_999).kind).toBe('leased');
    leases.markOutside(20000, 'a', 20_000);
    expect(leases.lease('b', ANY, 20_000).kind).toBe('leased');
  });
});

describe('the port share of an account', () => {
  const take = (leases: PortLeases, account: string | null, count: number): number =>
    Array.from({ length: count }, (_, index) =>
      leases.lease(`${account} ${leases.freeCount(0)} ${index}`, ANY, 0, { account }),
    ).filter(({ kind }) => kind === 'leased').length;

  it('leaves a quarter of the range to other accounts, and allows a single account three quarters', () => {
    const leases = new PortLeases({ from: 20000, to: 20099, accountShare: 0.25 }, () => 0);
    expect(take(leases, 'greedy', 100)).toBe(75);
    expect(leases.lease('one more', ANY, 0, { account: 'greedy' })).toEqual({ kind: 'share', held: 75 });
    expect(take(leases, 'modest', 20)).toBe(20);
    expect(take(leases, 'late', 10)).toBe(5);
    expect(leases.lease('the last', ANY, 0, { account: 'late' })).toEqual({ kind: 'exhausted' });
  });

  it('includes reserved ports without a tunnel: they are not free, and count for their account', () => {
    const leases = new PortLeases({ from: 20000, to: 20099, accountShare: 0.25 }, () => 0);
    const reserved = Array.from({ length: 60 }, (_, index) => ({ port: 20000 + index, account: 'greedy' }));
    const ports = new Set(reserved.map(({ port }) => port));
    const request = (account: string, isOwn = account === 'greedy') => ({
      account,
      isOthers: (port: number) => !isOwn && ports.has(port),
      isReserved: (port: number) => isOwn && ports.has(port),
      reserved: () => reserved,
    });
    let now = 0;
    const exact = (port: number, account: string): string => {
      now += 1000;
      return leases.lease(`${account} ${port}`, { kind: 'exact', port }, now, request(account)).kind;
    };
    const beyond = Array.from({ length: 40 }, (_, index) => exact(20060 + index, 'greedy'));
    expect(beyond.filter((kind) => kind === 'leased')).toHaveLength(15);
    expect(leases.lease('x', { kind: 'exact', port: 20099 }, now, request('greedy'))).toEqual({
      kind: 'share',
      held: 75,
    });
    // A port that the account has reserved is available to the account even above its share.
    expect(exact(20000, 'greedy')).toBe('leased');
    for (let index = 0; index < 25; index += 1) {
      now += 1000;
      expect(leases.lease(`modest ${index}`, ANY, now, request('modest')).kind).toBe('leased');
    }
  });

  it('does not limit the operator, and is at least four ports in a small range', () => {
    const leases = new PortLeases({ from: 20000, to: 20004, accountShare: 0.01 }, () => 0);
    expect(take(leases, 'a', 5)).toBe(4);
    expect(take(leases, null, 5)).toBe(1);
  });

  it('includes ports that are held for their owner, until they are free', () => {
    const leases = new PortLeases({ from: 20000, to: 20007, accountShare: 0.5 }, () => 0);
    expect(take(leases, 'a', 8)).toBe(6);
    const answer = leases.lease('x', ANY, 0, { account: 'b' });
    const port = answer.kind === 'leased' ? answer.port : 0;
    expect(leases.hold(port, 'x', 1000)).toBe(true);
    expect(leases.lease('y', ANY, 0, { account: 'a' })).toEqual({ kind: 'share', held: 6 });
    expect(leases.lease('x', { kind: 'exact', port }, 500, { account: 'b' })).toEqual({ kind: 'leased', port });
    leases.release(port, 'x');
    expect(take(leases, 'b', 8)).toBe(2);
  });
});
