// The tenant that is charged for the work for a visitor.
import { type Owner } from '@tunnel/rules/tunnels';
import { expect, it } from 'vitest';
import type { Route } from '../routing/registry.ts';
import { NO_POLICY } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { TunnelGroup } from '../routing/tunnel-group.rules.ts';
import { PolicySubject } from './policy-subject.ts';

const EVIL: Owner = { kind: 'account', accountId: 'evil' };
const OPERATOR: Owner = { kind: 'operator' };
const VISIT = { host: 'web.test', authority: 'web.test', scheme: 'http', address: '192.0.2.1' } as const;

const tunnelOf = (tunnelId: string, owner: Owner): Tunnel =>
  ({ tunnelId, owner, policy: NO_POLICY, alertWebhook: null, health: { healthy: true } }) as unknown as Tunnel;

const groupOf = (groupId: string, ...members: Tunnel[]): Route => {
  const endpoint = { kind: 'name', name: groupId } as const;
  const facts = { groupId, protocol: 'http', name: groupId, keyHash: groupId, endpoint, label: groupId } as const;
  const group = new TunnelGroup<Tunnel>({ ...facts, policy: NO_POLICY });
  for (const member of members) group.transition({ kind: 'member-joined', member }, 0);
  return group;
};

const tenantOf = (route: Route): string => new PolicySubject(route, null, VISIT).tenant;

it('an account has one share, regardless of its number of tunnels and groups', () => {
  const routes = [
    tunnelOf('tun_1', EVIL),
    tunnelOf('tun_2', EVIL),
    groupOf('grp_1', tunnelOf('tun_3', EVIL)),
    groupOf('grp_2', tunnelOf('tun_4', EVIL)),
  ];
  expect(new Set(routes.map(tenantOf))).toEqual(new Set(['account evil']));
});

it('each tunnel and each group of the operator has a separate share', () => {
  const routes = [
    tunnelOf('tun_1', OPERATOR),
    tunnelOf('tun_2', OPERATOR),
    groupOf('grp_1', tunnelOf('tun_3', OPERATOR), tunnelOf('tun_4', OPERATOR)),
  ];
  expect(routes.map(tenantOf)).toEqual(['operator tun_1', 'operator tun_2', 'operator grp_1']);
});

it('a group without members has a separate share', () => {
  expect(tenantOf(groupOf('grp_1'))).toBe('group grp_1');
});
