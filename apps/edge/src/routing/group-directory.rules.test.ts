import { type GroupProtocol, type LeasedEndpoint, MemberHealth, type Owner } from '@tunnel/rules/tunnels';
import { expect, it } from 'vitest';
import { GroupDirectory } from './group-directory.rules.ts';
import { type BroughtStamp, NO_POLICY_STAMP, type PolicyStamp } from './group-policy.rules.ts';
import { type GroupMember, TunnelGroup } from './tunnel-group.rules.ts';

const ALICE: Owner = { kind: 'account', accountId: 'alice' };
const BOB: Owner = { kind: 'account', accountId: 'bob' };
const KEY = 'a'.repeat(64);
const NONE: BroughtStamp = { ...NO_POLICY_STAMP, isReturning: false };
const OTHER = `${'a'.repeat(63)}b`;

const add = (
  directory: GroupDirectory<GroupMember>,
  facts: {
    readonly name: string;
    readonly protocol: GroupProtocol;
    readonly endpoint: LeasedEndpoint;
    readonly owner?: Owner;
    readonly stamp?: PolicyStamp;
  },
): TunnelGroup<GroupMember> => {
  const { stamp: policyStamp, ...rest } = facts;
  const group = new TunnelGroup<GroupMember>({
    groupId: facts.name,
    keyHash: KEY,
    label: facts.name,
    policy: null,
    policyStamp,
    ...rest,
  });
  const owner = facts.owner ?? ALICE;
  const member = { tunnelId: 't', owner, health: new MemberHealth(null), alertWebhook: null, policy: null };
  group.transition({ kind: 'member-joined', member }, 0);
  directory.add(group);
  return group;
};

/** Decision for a group at a name, which does not depend on the account. */
const atName = (
  directory: GroupDirectory<GroupMember>,
  name: string,
  keyHash: string,
  protocol: GroupProtocol,
  policy: BroughtStamp = NONE,
) => directory.decide({ protocol, name: 'any', keyHash, endpoint: { kind: 'name', name }, policy }, BOB);

const onPort = (directory: GroupDirectory<GroupMember>, name: string, keyHash: string, owner: Owner) =>
  directory.decide(
    { protocol: 'tcp', name, keyHash, endpoint: { kind: 'port', transport: 'tcp' }, policy: NONE },
    owner,
  );

const said = (decision: ReturnType<GroupDirectory<GroupMember>['decide']>): string =>
  decision.kind === 'refused' ? decision.fault.message : decision.kind;

it('an http group is found by its subdomain: first the key must match, then the protocol, but not the name', () => {
  const directory = new GroupDirectory<GroupMember>();
  expect(said(atName(directory, 'web', KEY, 'http'))).toBe('create');
  const group = add(directory, { name: 'web', protocol: 'http', endpoint: { kind: 'name', name: 'web' } });
  expect(atName(directory, 'web', KEY, 'http')).toEqual({ kind: 'join', group, policy: 'keep' });
  expect(said(atName(directory, 'web', OTHER, 'https'))).toBe('group key does not match');
  expect(said(atName(directory, 'web', KEY, 'https'))).toBe('group protocol does not match');
  expect(said(atName(directory, 'web', '', 'http'))).toBe('group key does not match');
});

it('a tcp group is found by name and key; another key is refused only to accounts with a member in the group', () => {
  const directory = new GroupDirectory<GroupMember>();
  const group = add(directory, { name: 'db', protocol: 'tcp', endpoint: { kind: 'port', transport: 'tcp', port: 1 } });
  expect(onPort(directory, 'db', KEY, BOB)).toEqual({ kind: 'join', group, policy: 'keep' });
  expect(said(onPort(directory, 'db', OTHER, ALICE))).toBe('group key does not match');
  expect(said(onPort(directory, 'db', OTHER, BOB))).toBe('create');
  expect(said(onPort(directory, 'cache', KEY, ALICE))).toBe('create');
  expect(said(atName(directory, 'db', KEY, 'http'))).toBe('create');
});

it('a group is found by subdomain and port while it lives, and removing it late keeps its successor', () => {
  const directory = new GroupDirectory<GroupMember>();
  const first = add(directory, { name: 'db', protocol: 'tcp', endpoint: { kind: 'port', transport: 'tcp', port: 1 } });
  directory.remove(first);
  const second = add(directory, { name: 'db', protocol: 'tcp', endpoint: { kind: 'port', transport: 'tcp', port: 1 } });
  const web = add(directory, { name: 'web', protocol: 'http', endpoint: { kind: 'name', name: 'web' } });
  directory.remove(first);
  expect([directory.at(second.endpoint), directory.at({ kind: 'name', name: 'web' }), directory.size]).toEqual([
    second,
    web,
    2,
  ]);
  expect(onPort(directory, 'db', KEY, ALICE)).toEqual({ kind: 'join', group: second, policy: 'keep' });
  directory.remove(second);
  directory.remove(web);
  expect([[...directory.values()], said(onPort(directory, 'db', KEY, ALICE))]).toEqual([[], 'create']);
});

it('the policy is compared last, so a member with another key or protocol learns nothing about revisions', () => {
  const directory = new GroupDirectory<GroupMember>();
  const stamp = { revision: 3, hash: '1f3a9c02'.padEnd(64, '0') };
  const group = add(directory, { name: 'web', protocol: 'http', endpoint: { kind: 'name', name: 'web' }, stamp });
  const brought = { revision: 2, hash: '77b1e4d0'.padEnd(64, '0'), isReturning: false };
  expect(said(atName(directory, 'web', OTHER, 'http', brought))).toBe('group key does not match');
  expect(said(atName(directory, 'web', KEY, 'https', brought))).toBe('group protocol does not match');
  expect(said(atName(directory, 'web', KEY, 'http', brought))).toBe(
    'group policy does not match: the group has revision 3 (1f3a9c02), this member brings revision 2 (77b1e4d0)',
  );
  const higher = { ...brought, revision: 4 };
  expect(atName(directory, 'web', KEY, 'http', higher)).toEqual({ kind: 'join', group, policy: 'replace' });
  const returning = { ...brought, isReturning: true };
  expect(atName(directory, 'web', KEY, 'http', returning)).toEqual({ kind: 'join', group, policy: 'keep' });
});
