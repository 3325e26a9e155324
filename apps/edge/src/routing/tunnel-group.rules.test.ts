import { RULE_LIMITS } from '@tunnel/rules/limits';
import { MemberHealth, type Owner, type ProbeKind } from '@tunnel/rules/tunnels';
import { expect, it } from 'vitest';
import { type GroupMember, TunnelGroup } from './tunnel-group.rules.ts';

const ALICE: Owner = { kind: 'account', accountId: 'alice' };
const BOB: Owner = { kind: 'account', accountId: 'bob' };
const OPERATOR: Owner = { kind: 'operator' };

const newGroup = () =>
  new TunnelGroup<GroupMember>({
    groupId: 'g',
    protocol: 'tcp',
    name: 'db',
    keyHash: '0123456789abcdef'.repeat(4),
    endpoint: { kind: 'port', transport: 'tcp', port: 20_001 },
    label: '20001',
    policy: null,
  });

const join = (
  group: TunnelGroup<GroupMember>,
  tunnelId: string,
  kind: ProbeKind | null = null,
  owner: Owner = ALICE,
): GroupMember => {
  const alertWebhook = `https://${tunnelId}.test/`;
  const member = { tunnelId, owner, health: new MemberHealth(kind), alertWebhook, policy: null };
  group.transition({ kind: 'member-joined', member }, 0);
  return member;
};

const down = (group: TunnelGroup<GroupMember>, member: GroupMember, now = 1) =>
  group.transition({ kind: 'reported-unhealthy', member, reason: 'connection refused', consecutiveFailures: 3 }, now);

const up = (group: TunnelGroup<GroupMember>, member: GroupMember, now = 2) =>
  group.transition({ kind: 'reported-healthy', member }, now);

it('a tcp group has its port as the label, and shows the first eight digits of its key hash', () => {
  expect([newGroup().label, newGroup().keyHashShort]).toEqual(['20001', '01234567']);
});

it('losing the last healthy member reports the change and one alert, until a member is healthy again', () => {
  const group = newGroup();
  const a = join(group, 'a', 'tcp');
  const b = join(group, 'b', 'tcp');
  expect(up(group, a)).toEqual([{ kind: 'health-changed', member: a, healthy: true, reason: 'the probe succeeded' }]);
  up(group, b);
  expect(down(group, a).map(({ kind }) => kind)).toEqual(['health-changed']);
  expect(down(group, b)).toEqual([
    { kind: 'health-changed', member: b, healthy: false, reason: 'connection refused' },
    { kind: 'raise-alert', memberCount: 2, urls: ['https://a.test/', 'https://b.test/'] },
  ]);
  expect(group.zeroHealthyAlerted).toBe(true);
  expect(down(group, b)).toEqual([]);
  up(group, a);
  expect(group.zeroHealthyAlerted).toBe(false);
  expect(down(group, a).map(({ kind }) => kind)).toEqual(['health-changed', 'raise-alert']);
});

it('an alert is raised when the last healthy member leaves the group, including the URL of this member', () => {
  const group = newGroup();
  const a = join(group, 'a');
  join(group, 'b', 'http');
  expect(group.transition({ kind: 'member-left', member: a }, 1)).toEqual([
    { kind: 'raise-alert', memberCount: 1, urls: ['https://b.test/', 'https://a.test/'] },
  ]);
});

it('a group that never had a healthy member raises no alert, even after a report, leave or take-over', () => {
  const group = newGroup();
  const a = join(group, 'a', 'tcp');
  const b = join(group, 'b', 'tcp');
  expect(down(group, a)).toEqual([]);
  expect(group.transition({ kind: 'member-joined', member: { ...a } }, 2)).toEqual([]);
  expect(group.transition({ kind: 'member-left', member: b }, 3)).toEqual([]);
  expect(group.tally(OPERATOR).totalHealthFailures).toBe(1);
});

it('a take-over keeps the member’s health, and the late end of the old member changes nothing', () => {
  const group = newGroup();
  const before = join(group, 'a', 'tcp');
  up(group, before);
  const after = { ...before };
  expect(group.transition({ kind: 'member-joined', member: after }, 3)).toEqual([]);
  expect(group.transition({ kind: 'member-left', member: before }, 4)).toEqual([]);
  expect([group.memberCount, group.healthyCount, group.pick(() => 0)]).toEqual([1, 1, after]);
  expect(group.tally(ALICE)).toMatchObject({ memberCount: 1, healthyCount: 1 });
});

it('health reports of a member without a health check are counted without further effects', () => {
  const group = newGroup();
  const a = join(group, 'a');
  expect(down(group, a)).toEqual([]);
  expect([a.health.healthy, a.health.totalFailures, a.health.history, group.healthyCount]).toEqual([true, 1, [], 1]);
});

it('totals for an owner cover the owner’s members, including former members', () => {
  const group = newGroup();
  const a = join(group, 'a', null, ALICE);
  const b = join(group, 'b', 'tcp', BOB);
  group.dispatched(a);
  group.dispatched(a);
  up(group, b);
  group.moved(a, b);
  down(group, b);
  expect(group.tally(OPERATOR)).toEqual({
    memberCount: 2,
    healthyCount: 1,
    totalDispatches: 2,
    totalHealthFailures: 1,
  });
  expect(group.tally(BOB)).toEqual({ memberCount: 1, healthyCount: 0, totalDispatches: 1, totalHealthFailures: 1 });
  group.transition({ kind: 'member-left', member: a }, 5);
  expect(group.tally(ALICE)).toEqual({ memberCount: 0, healthyCount: 0, totalDispatches: 1, totalHealthFailures: 0 });
  expect([group.isVisibleTo(ALICE), group.isVisibleTo(BOB), group.isVisibleTo(OPERATOR)]).toEqual([false, true, true]);
  expect(group.tally({ kind: 'account', accountId: 'carol' }).totalDispatches).toBe(0);
});

it('the health history keeps the last 50 transitions, oldest first, and skips repeated reports', () => {
  const group = newGroup();
  const a = join(group, 'a', 'tcp');
  for (let at = 1; at <= 120; at += 1) {
    if (at % 2 === 1) up(group, a, at);
    else down(group, a, at);
    if (at % 2 === 1) up(group, a, at + 0.5);
  }
  const { history } = a.health;
  expect(history).toHaveLength(RULE_LIMITS.HEALTH_HISTORY_MAX);
  expect(history.map(({ at }) => at)).toEqual(Array.from({ length: 50 }, (_, n) => 71 + n));
  expect(history.every(({ healthy }, n) => healthy === (n % 2 === 0))).toBe(true);
});

it('a returning member starts as unhealthy, which is recorded in its history', () => {
  const health = new MemberHealth('tcp');
  health.reportHealthy(1);
  health.returned(2);
  health.returned(3);
  expect([health.healthy, health.history.map(({ at, healthy }) => [at, healthy])]).toEqual([
    false,
    [
      [1, true],
      [2, false],
    ],
  ]);
});

it('the last failure reason is kept after a recovery and after a return', () => {
  const health = new MemberHealth('http');
  expect(health.lastFailureReason).toBeNull();
  health.reportUnhealthy({ reason: 'status 500', consecutiveFailures: 3 }, 1);
  health.reportUnhealthy({ reason: 'connection refused', consecutiveFailures: 4 }, 2);
  health.reportHealthy(3);
  health.returned(4);
  expect(health.lastFailureReason).toBe('connection refused');
});
