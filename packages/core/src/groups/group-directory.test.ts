import { expect, it } from 'vitest';
import { MemberHealth } from '../health.ts';
import type { Owner } from '../owner.ts';
import type { LeasedEndpoint } from '../public-endpoint.ts';
import { GroupDirectory } from './group-directory.ts';
import { type GroupMember, type GroupProtocol, TunnelGroup } from './tunnel-group.ts';

const ALICE: Owner = { kind: 'account', accountId: 'alice' };
const BOB: Owner = { kind: 'account', accountId: 'bob' };
const KEY = 'a'.repeat(64);
const OTHER = `${'a'.repeat(63)}b`;

const add = (
  directory: GroupDirectory<GroupMember>,
  facts: {
    readonly name: string;
    readonly protocol: GroupProtocol;
    readonly endpoint: LeasedEndpoint;
    readonly owner?: Owner;
  },
): TunnelGroup<GroupMember> => {
  const group = new TunnelGroup<GroupMember>({ groupId: facts.name, keyHash: KEY, ...facts });
  const member = { tunnelId: 't', owner: facts.owner ?? ALICE, health: new MemberHealth(null), alertWebhook: null };
  group.transition({ kind: 'member-joined', member }, 0);
  directory.add(group);
  return group;
};

const said = (decision: ReturnType<GroupDirectory<GroupMember>['decideHttp']>): string =>
  decision.kind === 'refused' ? decision.fault.message : decision.kind;

it('an http group is its subdomain: the key comes first, then the protocol, and the name is only for show', () => {
  const directory = new GroupDirectory<GroupMember>();
  expect(said(directory.decideHttp('web', KEY, 'http'))).toBe('create');
  const group = add(directory, { name: 'web', protocol: 'http', endpoint: { kind: 'name', name: 'web' } });
  expect(directory.decideHttp('web', KEY, 'http')).toEqual({ kind: 'join', group });
  expect(said(directory.decideHttp('web', OTHER, 'https'))).toBe('group key does not match');
  expect(said(directory.decideHttp('web', KEY, 'https'))).toBe('group protocol does not match');
  expect(said(directory.decideHttp('web', '', 'http'))).toBe('group key does not match');
});

it('a tcp group is its name and key: another key is refused only to those who are in a group of that name', () => {
  const directory = new GroupDirectory<GroupMember>();
  const group = add(directory, { name: 'db', protocol: 'tcp', endpoint: { kind: 'port', port: 1 } });
  expect(directory.decideTcp('db', KEY, BOB)).toEqual({ kind: 'join', group });
  expect(said(directory.decideTcp('db', OTHER, ALICE))).toBe('group key does not match');
  expect(said(directory.decideTcp('db', OTHER, BOB))).toBe('create');
  expect(said(directory.decideTcp('cache', KEY, ALICE))).toBe('create');
  expect(said(directory.decideHttp('db', KEY, 'http'))).toBe('create');
});

it('finds groups by subdomain and port while they live, and takes out no successor', () => {
  const directory = new GroupDirectory<GroupMember>();
  const first = add(directory, { name: 'db', protocol: 'tcp', endpoint: { kind: 'port', port: 1 } });
  directory.remove(first);
  const second = add(directory, { name: 'db', protocol: 'tcp', endpoint: { kind: 'port', port: 1 } });
  const web = add(directory, { name: 'web', protocol: 'http', endpoint: { kind: 'name', name: 'web' } });
  directory.remove(first);
  expect([directory.byPort(1), directory.bySubdomain('web'), directory.size]).toEqual([second, web, 2]);
  expect(directory.decideTcp('db', KEY, ALICE)).toEqual({ kind: 'join', group: second });
  directory.remove(second);
  directory.remove(web);
  expect([[...directory.values()], said(directory.decideTcp('db', KEY, ALICE))]).toEqual([[], 'create']);
});
