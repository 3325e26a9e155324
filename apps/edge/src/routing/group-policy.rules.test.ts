import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type BroughtStamp, decideGroupPolicy, groupPolicyWarning, type PolicyStamp } from './group-policy.rules.ts';

const hash = (start: string): string => start.padEnd(64, '0');
const GROUP: PolicyStamp = { revision: 3, hash: hash('1f3a9c02') };

const said = (group: PolicyStamp, member: PolicyStamp, isReturning = false): string => {
  const decision = decideGroupPolicy(group, { ...member, isReturning });
  return decision.kind === 'refused' ? decision.fault.message : decision.kind;
};

it('a member with the same revision and hash joins, and a higher revision replaces the policy', () => {
  expect(said(GROUP, GROUP)).toBe('keep');
  expect(said(GROUP, { revision: 4, hash: GROUP.hash })).toBe('replace');
  expect(said(GROUP, { revision: 4, hash: null })).toBe('replace');
  expect(said({ revision: 0, hash: null }, { revision: 0, hash: null })).toBe('keep');
});

it('a lower revision or another hash is refused with a message about both policies', () => {
  expect(said(GROUP, { revision: 2, hash: hash('77b1e4d0') })).toBe(
    'group policy does not match: the group has revision 3 (1f3a9c02), this member brings revision 2 (77b1e4d0)',
  );
  expect(said(GROUP, { revision: 3, hash: null })).toBe(
    'group policy does not match: the group has revision 3 (1f3a9c02), this member brings revision 3 (none)',
  );
  expect(said({ revision: 0, hash: null }, { revision: 0, hash: GROUP.hash })).toBe(
    'group policy does not match: the group has revision 0 (none), this member brings revision 0 (1f3a9c02)',
  );
});

it('a refused policy has status 409 and the code GROUP_POLICY_MISMATCH', () => {
  const decision = decideGroupPolicy(GROUP, { revision: 0, hash: null, isReturning: false });
  expect(decision.kind === 'refused' && [decision.fault.code, decision.fault.status]).toEqual([
    'GROUP_POLICY_MISMATCH',
    409,
  ]);
});

it('a returning member joins under the group’s policy, and is warned about another policy', () => {
  const lower = { revision: 2, hash: hash('77b1e4d0') };
  expect(said(GROUP, lower, true)).toBe('keep');
  expect(said(GROUP, { revision: 3, hash: null }, true)).toBe('keep');
  expect(said(GROUP, { revision: 4, hash: null }, true)).toBe('replace');
  expect(groupPolicyWarning(GROUP, lower)).toBe(
    "policy: this member brings revision 2 (77b1e4d0) but the group's policy applies: revision 3 (1f3a9c02)",
  );
  expect(groupPolicyWarning(GROUP, { ...GROUP })).toBeNull();
});

const stamp = fc.record({
  revision: fc.nat({ max: 4 }),
  hash: fc.constantFrom(null, hash('a'), hash('b')),
});
const brought: fc.Arbitrary<BroughtStamp> = fc
  .tuple(stamp, fc.boolean())
  .map(([one, isReturning]) => ({ ...one, isReturning }));

it('revisions never fall and a revision never has two policies, over random members', () => {
  fc.assert(
    fc.property(stamp, fc.array(brought, { maxLength: 40 }), (first, comers) => {
      let group = first;
      const ofRevision = new Map<number, string | null>([[first.revision, first.hash]]);
      for (const member of comers) {
        const { kind } = decideGroupPolicy(group, member);
        const before = group;
        if (kind === 'replace') group = { revision: member.revision, hash: member.hash };
        expect(group.revision).toBeGreaterThanOrEqual(before.revision);
        // A joined member is served under its own policy or a newer policy. Only a returning member can bring a different policy with the
        // same revision.
        if (kind !== 'refused' && !member.isReturning) {
          expect(group.revision).toBe(member.revision);
          expect(group.hash).toBe(member.hash);
        }
        if (kind === 'refused') expect(member.isReturning).toBe(false);
        const known = ofRevision.get(group.revision);
        if (known !== undefined) expect(group.hash).toBe(known);
        ofRevision.set(group.revision, group.hash);
      }
    }),
    { numRuns: 500 },
  );
});
