import { MemberHealth } from '@tunnel/rules/tunnels';
import { expect, it } from 'vitest';
import { Registry } from './registry.ts';
import { NO_POLICY } from './route-policy.ts';
import type { Tunnel } from './tunnel.ts';
import { TunnelGroup } from './tunnel-group.rules.ts';

const tunnel = (tunnelId: string, assignedPort: number): Tunnel =>
  ({ tunnelId, endpoint: { kind: 'port', transport: 'tcp', port: assignedPort }, group: null }) as Tunnel;

it('finds a tunnel by id and by port while it lives', () => {
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

it('a name of the public and the same name among peers are two', () => {
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

it('keeps the successor when its predecessor is removed late', () => {
  const table = new Registry();
  const before = tunnel('a', 1);
  const after = tunnel('a', 1);
  table.add(before);
  table.add(after);
  table.remove(before);
  expect([table.get('a'), table.at({ kind: 'port', transport: 'tcp', port: 1 })]).toEqual([after, after]);
});

it('tells when an id begins and ends, and nothing when a successor has it', () => {
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

it('finds a group at its endpoint, and its members by id alone', () => {
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
