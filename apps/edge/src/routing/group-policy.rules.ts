// Whose policy a group is served under: its first member's, until one with a higher revision comes. Says; never does.
import { Fault } from '@tunnel/errors';

/** What identifies the policy of a group, or the one that a member brings. */
export interface PolicyStamp {
  /** Rises with each change that all members are to follow. */
  readonly revision: number;
  /** 64 hex digits, of policy and services; null: no policy. */
  readonly hash: string | null;
}

export const NO_POLICY_STAMP: PolicyStamp = { revision: 0, hash: null };

export const SHORT_HASH_CHARS = 8;

export interface BroughtStamp extends PolicyStamp {
  /** It was a member when its session was interrupted, or is one and brings what it brought before. */
  readonly isReturning: boolean;
}

export type GroupPolicyDecision =
  /** The group's stays as it is, also where the member brings another one. */
  | { readonly kind: 'keep' }
  /** The member's is everybody's from the next request on. */
  | { readonly kind: 'replace' }
  | { readonly kind: 'refused'; readonly fault: Fault };

/**
 * A member that comes back is let in under the group's, whatever it brings: a short loss in the middle of a roll must not cost the
 * members that wait for their turn. So is a running one that brings nothing new; one that does is judged as a new one is.
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

/** null: it is served under what it brought. */
export const groupPolicyWarning = (group: PolicyStamp, member: PolicyStamp): string | null =>
  isSame(group, member)
    ? null
    : `policy: this member brings revision ${member.revision} (${shownHash(member)}) but the group's policy applies: revision ${group.revision} (${shownHash(group)})`;

const isSame = (a: PolicyStamp, b: PolicyStamp): boolean => a.revision === b.revision && a.hash === b.hash;

const shownHash = ({ hash }: PolicyStamp): string => hash?.slice(0, SHORT_HASH_CHARS) ?? 'none';
