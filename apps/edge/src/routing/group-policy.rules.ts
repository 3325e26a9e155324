// Decides which policy applies to a group: the policy of the first member, until a member brings a higher revision. Has no side effects.
import { Fault } from '@tunnel/errors';

/** Revision and hash of a group's policy, or of the policy that a member brings. */
export interface PolicyStamp {
  /** Revision number. Must be increased with every policy change meant for the whole group. */
  readonly revision: number;
  /** Hash of the policy and its services, 64 hex digits. Null if there is no policy. */
  readonly hash: string | null;
}

export const NO_POLICY_STAMP: PolicyStamp = { revision: 0, hash: null };

export const SHORT_HASH_CHARS = 8;

export interface BroughtStamp extends PolicyStamp {
  /** True if the tunnel was a member when its session was interrupted, or is a member and brings the same policy as before. */
  readonly isReturning: boolean;
}

export type GroupPolicyDecision =
  /** The group keeps its policy, even if the member brings a different policy. */
  | { readonly kind: 'keep' }
  /** The member's policy applies to the whole group from the next request. */
  | { readonly kind: 'replace' }
  | { readonly kind: 'refused'; readonly fault: Fault };

/**
 * Decides about the policy of a joining or running member. A returning member is admitted under the group's policy, whatever policy it
 * brings: a short disconnect during a rolling update must not exclude members that still wait for their update. The same holds for a
 * running member without a new policy. A running member with a new policy is treated like a new member.
 */
export const decideGroupPolicy = (group: PolicyStamp, member: BroughtStamp): GroupPolicyDecision => {
  if (member.revision > group.revision) return { kind: 'replace' };
  if (isSame(group, member) || member.isReturning) return { kind: 'keep' };
  const fault = new Fault('GROUP_POLICY_MISMATCH', {
    group_revision: group.revision,
    group_hash: shownHash(group),
    revision: member.revision,
    hash: shownHash(member),
  });
  return { kind: 'refused', fault };
};

/** Returns a warning for the member's client if the group's policy differs from the policy it brought, otherwise null. */
export const groupPolicyWarning = (group: PolicyStamp, member: PolicyStamp): string | null =>
  isSame(group, member)
    ? null
    : `policy: this member brings revision ${member.revision} (${shownHash(member)}) but the group's policy applies: revision ${group.revision} (${shownHash(group)})`;

const isSame = (a: PolicyStamp, b: PolicyStamp): boolean => a.revision === b.revision && a.hash === b.hash;

const shownHash = ({ hash }: PolicyStamp): string => hash?.slice(0, SHORT_HASH_CHARS) ?? 'none';
