import { MemberHealth } from '@tunnel/rules/tunnels';
import { expect, it } from 'vitest';
import { Registry } from './registry.ts';
import { NO_POLICY } from './route-policy.ts';
import type { Tunnel } from './tunnel.ts';
import { TunnelGroup } from './tunnel-group.rules.ts';

const tunnel = (tunnelId: string, assignedPort: number): Tunnel =>
  ({ tunnelId, endpoint: { kind: 'port', transport: 'tcp', port: assignedPort }, group: null }) as Tunnel;

it('a tunnel is found by id and by port until it is removed', () => {
  const table = new Registry();
  const a = tunnel('a', 1);
  table.add(a);
  expect([table.get('a'), table.at({ kind: 'port', transport: 'tcp', port: 1 }), table.size]).toEqual([a, a, 1]);
  table.remove(a);
  expect([
    table.get('a'),
    table.at({ kind: 'port', transport: 'tcp', port: 1 }),
    table.size,
    [...table.values()],
  ]).toEqual([undefined, undefined, 0, []]);
});

it('a subdomain and a p2p name with the same text are separate', () => {
  const table = new Registry();
  const web = { tunnelId: 'a', endpoint: { kind: 'name', name: 'web' }, group: null } as Tunnel;
  const peer = { tunnelId: 'b', endpoint: { kind: 'peer-name', name: 'web', account: 'alice' }, group: null } as Tunnel;
  table.add(web);
  table.add(peer);
  expect([
    table.at({ kind: 'name', name: 'web' }),
    table.at({ kind: 'peer-name', name: 'web', account: 'alice' }),
  ]).toEqual([web, peer]);
  table.remove(web);
  expect([
    table.at({ kind: 'name', name: 'web' }),
    table.at({ kind: 'peer-name', name: 'web', account: 'alice' }),
  ]).toEqual([undefined, peer]);
});

it('removing a tunnel late keeps its successor', () => {
  const table = new Registry();
  const before = tunnel('a', 1);
  const after = tunnel('a', 1);
  table.add(before);
  table.add(after);
  table.remove(before);
  expect([table.get('a'), table.at({ kind: 'port', transport: 'tcp', port: 1 })]).toEqual([after, after]);
});

it('a watcher hears of every added tunnel, and of a removal only if no successor has the id', () => {
  const told: string[] = [];
  const watcher = {
    tunnelAdded: ({ tunnelId }: Tunnel) => void told.push(`+${tunnelId}`),
    tunnelRemoved: ({ tunnelId }: Tunnel) => void told.push(`-${tunnelId}`),
  };
  const table = new Registry([watcher]);
  const before = tunnel('a', 1);
  const after = tunnel('a', 1);
  table.add(before);
  table.add(after);
  table.remove(before);
  table.remove(after);
  expect(told).toEqual(['+a', '+a', '-a']);
});

it('a group is found at its endpoint, and its members by id only', () => {
  const table = new Registry();
  const facts = {
    groupId: 'g',
    protocol: 'tcp',
    name: 'db',
    keyHash: '',
    endpoint: { kind: 'port', transport: 'tcp', port: 2 },
    label: '2',
    policy: NO_POLICY,
  } as const;
  const group = new TunnelGroup<Tunnel>(facts);
  const member = {
    ...tunnel('m', 2),
    endpoint: { kind: 'member', groupId: 'g' },
    group,
    health: new MemberHealth(null),
  };
  table.groups.add(group);
  table.add(member as Tunnel);
  expect([table.at({ kind: 'port', transport: 'tcp', port: 2 }), table.get('m'), table.has(member as Tunnel)]).toEqual([
    group,
    member,
    true,
  ]);
  table.groups.remove(group);
  expect([table.at({ kind: 'port', transport: 'tcp', port: 2 }), table.get('m')]).toEqual([undefined, member]);
});
