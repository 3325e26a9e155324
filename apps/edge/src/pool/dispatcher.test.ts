import { MemberHealth, TunnelGroup } from '@tunnel/core';
import { expect, it } from 'vitest';
import { EDGE_LIMITS } from '../limits.ts';
import { Dispatcher } from './dispatcher.ts';
import type { Tunnel } from './tunnel.ts';

const newGroup = () =>
  new TunnelGroup<Tunnel>({
    groupId: 'g',
    protocol: 'tcp',
    name: 'db',
    keyHash: '',
    endpoint: { kind: 'port', port: 1 },
  });

/** `carriers`: those its client has open now. */
const join = (group: TunnelGroup<Tunnel>, tunnelId: string, carriers = 1): Tunnel => {
  const mux = { liveCarriers: carriers };
  const owner = { kind: 'operator' } as const;
  const member = { tunnelId, group, owner, health: new MemberHealth(null), session: { mux } } as unknown as Tunnel;
  group.transition({ kind: 'member-joined', member }, 0);
  return member;
};

const dispatcher = new Dispatcher({ random: Math.random });

it('a tunnel that stands alone has one turn, whatever its health and its carriers', () => {
  const alone = { group: null, health: new MemberHealth('tcp'), session: { mux: null } } as unknown as Tunnel;
  expect([dispatcher.choose(alone, []), dispatcher.choose(alone, [alone])]).toEqual([alone, null]);
  expect([dispatcher.stays(alone, alone), dispatcher.stays(alone, { ...alone })]).toEqual([true, false]);
});

it('members whose client has no carrier come last, and are chosen when there are no others', () => {
  const group = newGroup();
  const away = [join(group, 'a', 0), join(group, 'b', 0)];
  const here = join(group, 'c');
  for (let n = 0; n < 20; n += 1) expect(dispatcher.choose(group, [])).toBe(here);
  const second = dispatcher.choose(group, [here]) as Tunnel;
  expect(away).toContain(second);
  const third = dispatcher.choose(group, [here, second]) as Tunnel;
  expect([away.includes(third), third === second, dispatcher.choose(group, [here, second, third])]).toEqual([
    true,
    false,
    null,
  ]);
});

it('a visitor is tried with a bounded number of members', () => {
  const group = newGroup();
  const members = Array.from({ length: EDGE_LIMITS.MEMBER_TRIES_MAX + 1 }, (_, n) => join(group, `t${n}`));
  expect(dispatcher.choose(group, members.slice(0, EDGE_LIMITS.MEMBER_TRIES_MAX - 1))).not.toBeNull();
  expect(dispatcher.choose(group, members.slice(0, EDGE_LIMITS.MEMBER_TRIES_MAX))).toBeNull();
});

it('a connection stays with its member while that is healthy and in the group', () => {
  const group = newGroup();
  const member = join(group, 'a');
  expect(dispatcher.stays(group, member)).toBe(true);
  group.transition({ kind: 'member-left', member }, 1);
  expect(dispatcher.stays(group, member)).toBe(false);
});
