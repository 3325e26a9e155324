import { InFlight } from '@tunnel/rules/rate';
import { MemberHealth } from '@tunnel/rules/tunnels';
import { describe, expect, it } from 'vitest';
import { TunnelCounters } from '../backend/tunnel-counters.ts';
import { Balancer, FailedMembers, Lease, MEMBER_TRIES_MAX, MEMBER_TRIES_MS } from './balancer.ts';
import { NO_POLICY } from './route-policy.ts';
import type { Tunnel } from './tunnel.ts';
import { TunnelGroup } from './tunnel-group.rules.ts';

const newGroup = () =>
  new TunnelGroup<Tunnel>({
    groupId: 'g',
    protocol: 'tcp',
    name: 'db',
    keyHash: '',
    endpoint: { kind: 'port', transport: 'tcp', port: 1 },
    label: '1',
    policy: NO_POLICY,
  });

type Given = Partial<Pick<Tunnel, 'http' | 'group'>> & { readonly isConnected?: boolean };

const newTunnel = (tunnelId: string, { isConnected = true, http = null, group = null }: Given = {}): Tunnel =>
  ({
    tunnelId,
    group,
    http,
    owner: { kind: 'operator' },
    health: new MemberHealth(null),
    upstream: { isConnected, open: () => null },
    counters: new TunnelCounters(),
  }) as unknown as Tunnel;

const join = (group: TunnelGroup<Tunnel>, tunnelId: string, given: Given = {}): Tunnel => {
  const member = newTunnel(tunnelId, { ...given, group });
  group.transition({ kind: 'member-joined', member }, 0);
  return member;
};

const leave = (group: TunnelGroup<Tunnel>, member: Tunnel): void =>
  void group.transition({ kind: 'member-left', member }, 1);

const setUp = (limits = { perTunnel: 100 }, random: () => number = Math.random) => {
  const counts = new InFlight({ perKey: limits.perTunnel });
  return { counts, balancer: new Balancer({ counts, random }) };
};

/** Retries like the holder of a lease: the current member is recorded as failed. */
const retry = (balancer: Balancer, lease: Lease, failed: FailedMembers, nowMs = 0): Tunnel | null => {
  if (lease.member !== null) failed.members.push(lease.member);
  return balancer.retryOnNextMember(lease, failed, nowMs, 'any');
};

const dispatchesOf = (group: TunnelGroup<Tunnel>): number => group.tally({ kind: 'operator' }).totalDispatches;

describe('a single tunnel', () => {
  it('is leased regardless of health and carriers, and has no next member', () => {
    const { balancer, counts } = setUp();
    const alone = newTunnel('a', { isConnected: false });
    const lease = new Lease();
    expect(balancer.acquire(lease, alone)).toBeNull();
    expect([lease.member, alone.counters.openConnections, counts.total]).toEqual([alone, 1, 1]);
    expect(retry(balancer, lease, new FailedMembers(0))).toBeNull();
    balancer.release(lease);
    balancer.release(lease);
    expect([lease.member, alone.counters.openConnections, counts.total]).toEqual([null, 0, 0]);
  });

  it('that was registered again keeps the connection', () => {
    const { balancer, counts } = setUp();
    const lease = new Lease();
    balancer.acquire(lease, newTunnel('a'));
    const again = newTunnel('a');
    balancer.acquire(lease, again);
    expect([lease.member === again, counts.total]).toEqual([true, 1]);
  });
});

describe('balancing within a group', () => {
  it('picks members without a carrier last, and only if no other member is left', () => {
    const { balancer } = setUp();
    const group = newGroup();
    const away = [join(group, 'a', { isConnected: false }), join(group, 'b', { isConnected: false })];
    const here = join(group, 'c');
    for (let n = 0; n < 20; n += 1) {
      const lease = new Lease();
      balancer.acquire(lease, group);
      expect(lease.member).toBe(here);
    }
    const lease = new Lease();
    const failed = new FailedMembers(0);
    balancer.acquire(lease, group);
    const second = retry(balancer, lease, failed) as Tunnel;
    const third = retry(balancer, lease, failed) as Tunnel;
    expect([away.includes(second), away.includes(third), second === third]).toEqual([true, true, false]);
    expect(retry(balancer, lease, failed)).toBeNull();
  });

  it('tries a bounded number of members for a connection, for a bounded time', () => {
    const { balancer } = setUp();
    const group = newGroup();
    for (let n = 0; n <= MEMBER_TRIES_MAX; n += 1) join(group, `t${n}`);
    const lease = new Lease();
    const failed = new FailedMembers(0);
    balancer.acquire(lease, group);
    let tries = 1;
    while (retry(balancer, lease, failed) !== null) tries += 1;
    expect(tries).toBe(MEMBER_TRIES_MAX);
    const late = new Lease();
    balancer.acquire(late, group);
    expect(retry(balancer, late, new FailedMembers(0), MEMBER_TRIES_MS)).toBeNull();
  });

  it('keeps a connection on its member while the member is healthy, and counts one dispatch', () => {
    const { balancer } = setUp();
    const group = newGroup();
    const member = join(group, 'a');
    const lease = new Lease();
    balancer.acquire(lease, group);
    join(group, 'b');
    for (let n = 0; n < 20; n += 1) balancer.acquire(lease, group);
    expect([lease.member, dispatchesOf(group)]).toEqual([member, 1]);
    leave(group, member);
    balancer.acquire(lease, group);
    expect([lease.member?.tunnelId, dispatchesOf(group), member.counters.openConnections]).toEqual(['b', 2, 0]);
  });

  it('skips a full member, and refuses a connection when every member is full', () => {
    const { balancer, counts } = setUp({ perTunnel: 1 });
    const group = newGroup();
    join(group, 'a');
    join(group, 'b');
    const leases = [new Lease(), new Lease(), new Lease()];
    expect(leases.map((lease) => balancer.acquire(lease, group)?.reason)).toEqual([
      undefined,
      undefined,
      'tunnel-limit',
    ]);
    expect(new Set(leases.map(({ member }) => member?.tunnelId)).size).toBe(3);
    expect(counts.total).toBe(2);
    join(group, 'c');
    expect(balancer.acquire(new Lease(), group)).toBeNull();
  });

  it('leaves a lease unchanged if there is no next member', () => {
    const { balancer, counts } = setUp({ perTunnel: 1 });
    const group = newGroup();
    join(group, 'a');
    join(group, 'b');
    const one = new Lease();
    const two = new Lease();
    balancer.acquire(one, group);
    balancer.acquire(two, group);
    const member = one.member;
    expect(retry(balancer, one, new FailedMembers(0))).toBeNull();
    expect([one.member === member, counts.total]).toEqual([true, 2]);
  });

  it('refuses a connection with GROUP_UNHEALTHY without a healthy member', () => {
    const { balancer } = setUp();
    expect(balancer.acquire(new Lease(), newGroup())?.fault.code).toBe('GROUP_UNHEALTHY');
  });
});

it('a request with a body is retried only on services with the same HTTP version', () => {
  const { balancer } = setUp();
  const group = newGroup();
  const http = (localProtocol: 'http1' | 'h2c') => ({ hostHeader: null, localProtocol, capture: false });
  const first = join(group, 'a', { http: http('h2c') });
  join(group, 'b', { http: http('http1') });
  const failed = new FailedMembers(0);
  failed.members.push(first);
  expect(balancer.retryOnNextMember(new Lease(), failed, 0, 'same-local-protocol')).toBeNull();
  const other = join(group, 'c', { http: http('h2c') });
  expect(balancer.retryOnNextMember(new Lease(), failed, 0, 'same-local-protocol')).toBe(other);
  expect(balancer.retryOnNextMember(new Lease(), failed, 0, 'any')).not.toBeNull();
});

it('open connections are counted for exactly the members that hold them, over 5000 random events', () => {
  let seed = 7;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const { balancer, counts } = setUp({ perTunnel: 3 }, random);
  const group = newGroup();
  const members = Array.from({ length: 4 }, (_, n) => join(group, `t${n}`, { isConnected: n !== 2 }));
  const held: { lease: Lease; failed: FailedMembers | null }[] = [];
  for (let step = 0; step < 5000; step += 1) {
    const at = Math.floor(random() * held.length);
    const one = held[at];
    const what = random();
    if (what < 0.4 || one === undefined) {
      const lease = new Lease();
      if (balancer.acquire(lease, group) === null) held.push({ lease, failed: null });
    } else if (what < 0.6) {
      one.failed ??= new FailedMembers(step);
      const before = one.lease.member;
      if (before !== null && !one.failed.members.includes(before)) one.failed.members.push(before);
      const next = balancer.retryOnNextMember(one.lease, one.failed, step, 'any');
      if (next !== null) expect([next === one.lease.member, one.failed.members.includes(next)]).toEqual([true, false]);
      else expect(one.lease.member).toBe(before);
    } else if (what < 0.9) {
      balancer.release(one.lease);
      held.splice(at, 1);
    } else if (random() < 0.5) balancer.acquire(one.lease, group);
    else {
      const member = members[Math.floor(random() * members.length)] as Tunnel;
      if (group.isHealthy(member)) {
        group.transition({ kind: 'reported-unhealthy', member, reason: '', consecutiveFailures: 1 }, step);
      } else group.transition({ kind: 'reported-healthy', member }, step);
    }
    const live = held.filter(({ lease }) => lease.member !== null);
    const open = members.map((member) => live.filter(({ lease }) => lease.member === member).length);
    const counted = members.flatMap(({ counters, tunnelId }) => [counters.openConnections, counts.of(tunnelId)]);
    // One comparison per step, because thousands of separate comparisons take seconds.
    const wanted = [live.length, 3, ...open.flatMap((n) => [n, n])];
    expect([counts.total, Math.max(3, ...open), ...counted].join(' ')).toBe(wanted.join(' '));
  }
  for (const { lease } of held) balancer.release(lease);
  expect(counts.total).toBe(0);
});
