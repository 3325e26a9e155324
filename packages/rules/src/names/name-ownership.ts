import { RULE_LIMITS } from '../limits.ts';

// Ownership of a subdomain or port over months, independent of storage. A lease, in contrast, says who serves the name at the moment. First
// use claims a subdomain, a reservation keeps it. An expired or released name stays blocked for other accounts for a while.

interface Owned {
  readonly ownerId: string;
  /**
   * Key of the owner's last group with this name. Any account with the key may open the name again, so that a group of two accounts can
   * restart in any order.
   */
  readonly groupKeyHash: string | null;
  /** Number of tunnels that serve the name now, including tunnels of nested names. */
  readonly openTunnels: number;
  /** Time when the last tunnel with the name ended. Null until the first tunnel has ended. */
  readonly lastUsedAt: number | null;
  /** True if the edge chose the name and the account has not requested it by name since. Such a name is held for a shorter time. */
  readonly isAssigned?: true | undefined;
}

export type NameOwnership =
  | { readonly kind: 'free' }
  /** An account holds the name because it used it. The hold time starts when the last tunnel ends. */
  | ({ readonly kind: 'held' } & Owned)
  /** An account has reserved the name explicitly. A reservation never expires. */
  | ({ readonly kind: 'reserved' } & Owned)
  /** Released or expired. `releasedAt` is null while tunnels are still open; the grace time starts when they have ended. */
  | ({ readonly kind: 'released'; readonly releasedAt: number | null } & Owned);

export interface NameRules {
  /** How long an account keeps a name after its last use. 0: use claims nothing, as for ports, which are scarce. */
  readonly holdMs: number;
  /** Hold time of a name chosen by the edge. Undefined: the same as for chosen names. */
  readonly assignedHoldMs?: number;
  /** How long a released name stays blocked for other accounts. 0: the name is free at once. */
  readonly graceMs: number;
  /** True if accounts cannot claim this name while it is free. The current owner keeps the name. */
  readonly isWithheld?: boolean;
}

export type NameEvent =
  | {
      readonly kind: 'tunnel-opened';
      readonly by: string;
      readonly groupKeyHash: string | null;
      /** True if a running group admitted the tunnel by key. Then the tunnel is only counted. */
      readonly joinsGroup: boolean;
      /** True if the edge chose the name, in this run of the client or in an earlier run. */
      readonly isAssigned?: boolean;
    }
  /** `abandoned`: the tunnel was admitted but found no slot, so it never served a visitor. */
  | { readonly kind: 'tunnel-ended'; readonly abandoned: boolean }
  /** An account reserves the name. `servedByOther`: a tunnel of another account serves the name without owning it. */
  | { readonly kind: 'reserve'; readonly by: string; readonly servedByOther: boolean }
  | { readonly kind: 'release'; readonly by: string }
  /** The account holds too many names, and this name is the least recently used. */
  | { readonly kind: 'crowded-out' }
  | { readonly kind: 'time-passed' };

export type NameRefusal = 'in-use' | 'group-key' | 'withheld';

export type NameEffect =
  | { readonly kind: 'refused'; readonly reason: NameRefusal }
  /** The name now belongs to the account because a tunnel used it. */
  | { readonly kind: 'claimed'; readonly ownerId: string }
  | { readonly kind: 'reserved'; readonly ownerId: string }
  /** The account's reservation of the name has ended. */
  | { readonly kind: 'unreserved' }
  | { readonly kind: 'released' }
  | { readonly kind: 'freed' };

type Step = readonly [NameOwnership, readonly NameEffect[]];

export const FREE_NAME: NameOwnership = { kind: 'free' };

/** Returns the label that decides the owner: `a.shop` and `*.shop` belong to the owner of `shop`. */
export const owningLabel = (label: string): string => label.slice(label.lastIndexOf('.') + 1);

/** Returns when the name expires, or null if it does not expire in its current state. */
export const nameEndsAt = (name: NameOwnership, rules: NameRules): number | null => {
  if (name.kind === 'free' || name.kind === 'reserved' || name.openTunnels > 0) return null;
  if (name.kind === 'held') return name.lastUsedAt === null ? null : name.lastUsedAt + holdMsOf(name, rules);
  return name.releasedAt === null ? null : name.releasedAt + rules.graceMs;
};

/** Returns how long an account keeps a name after its last tunnel has ended. */
export const holdMsOf = ({ isAssigned }: Pick<Owned, 'isAssigned'>, rules: NameRules): number =>
  isAssigned === true ? (rules.assignedHoldMs ?? rules.holdMs) : rules.holdMs;

/** Applies the passage of time. A long unread record changes at the time when it expired, not when it is read. */
export const nameAt = (name: NameOwnership, now: number, rules: NameRules): NameOwnership => {
  const endsAt = nameEndsAt(name, rules);
  if (name.kind === 'free' || endsAt === null || now < endsAt) return name;
  // A name without a hold time is free as soon as its last tunnel has ended.
  if (name.kind === 'released' || rules.holdMs === 0) return FREE_NAME;
  return nameAt({ ...name, kind: 'released', groupKeyHash: null, releasedAt: endsAt }, now, rules);
};

/** `by` is null for the operator, who owns no names and cannot take an account's name. */
export const refusalOfName = (
  name: NameOwnership,
  who: { readonly by: string | null; readonly groupKeyHash: string | null },
  now: number,
  rules: NameRules,
): NameRefusal | null => {
  const current = nameAt(name, now, rules);
  if (current.kind === 'free') return rules.isWithheld === true && who.by !== null ? 'withheld' : null;
  if (current.ownerId === who.by) return null;
  if (who.groupKeyHash === null) return 'in-use';
  return who.groupKeyHash === current.groupKeyHash ? null : 'group-key';
};

export const transitionName = (name: NameOwnership, event: NameEvent, now: number, rules: NameRules): Step => {
  const current = nameAt(name, now, rules);
  const [next, effects] = stepOf(current, event, now, rules);
  return [next, [...effectsOfTime(name, current), ...effects]];
};

const stepOf = (name: NameOwnership, event: NameEvent, now: number, rules: NameRules): Step => {
  switch (event.kind) {
    case 'time-passed':
      return [name, []];
    case 'tunnel-opened':
      return opened(name, event, now, rules);
    case 'tunnel-ended':
      return ended(name, event.abandoned, now, rules);
    case 'reserve':
      return reserved(name, event.by, event.servedByOther, rules);
    case 'release':
      return name.kind === 'free' || name.ownerId !== event.by ? [name, []] : released(name, now, rules);
    case 'crowded-out':
      return name.kind === 'held' ? released(name, now, rules) : [name, []];
  }
};

const opened = (
  name: NameOwnership,
  event: Extract<NameEvent, { kind: 'tunnel-opened' }>,
  now: number,
  rules: NameRules,
): Step => {
  const { by, groupKeyHash, joinsGroup, isAssigned = false } = event;
  if (name.kind === 'free') {
    if (joinsGroup) return [name, []];
    if (rules.isWithheld === true) return [name, [{ kind: 'refused', reason: 'withheld' }]];
    if (rules.holdMs === 0) return [name, []];
    return [
      { kind: 'held', ownerId: by, groupKeyHash, openTunnels: 1, lastUsedAt: null, ...assignedMark(isAssigned) },
      [{ kind: 'claimed', ownerId: by }],
    ];
  }
  const served = { ...name, openTunnels: name.openTunnels + 1 };
  if (joinsGroup) return [served, []];
  const reason = refusalOfName(name, event, now, rules);
  if (reason !== null) return [name, [{ kind: 'refused', reason }]];
  if (name.ownerId !== by) return [served, []];
  const own = {
    ...served,
    groupKeyHash: groupKeyHash ?? name.groupKeyHash,
    // A name that the account requests is a chosen name from then on.
    isAssigned: isAssigned ? name.isAssigned : undefined,
  };
  if (own.kind !== 'released' || rules.holdMs === 0) return [own, []];
  return [{ ...ownedOf(own), kind: 'held' }, [{ kind: 'claimed', ownerId: by }]];
};

const ended = (name: NameOwnership, abandoned: boolean, now: number, rules: NameRules): Step => {
  if (name.kind === 'free' || name.openTunnels === 0) return [name, []];
  const openTunnels = name.openTunnels - 1;
  const lastUsedAt = abandoned ? name.lastUsedAt : now;
  const next = { ...name, openTunnels, lastUsedAt };
  if (openTunnels > 0) return [next, []];
  // The name was claimed for a tunnel that never ran. A failed attempt must not block the name for others.
  if (next.kind === 'held' && lastUsedAt === null) return [FREE_NAME, [{ kind: 'freed' }]];
  const last = next.kind === 'released' ? { ...next, releasedAt: next.releasedAt ?? now } : next;
  const after = nameAt(last, now, rules);
  return [after, effectsOfTime(last, after)];
};

const reserved = (name: NameOwnership, by: string, servedByOther: boolean, { isWithheld }: NameRules): Step => {
  if (name.kind === 'free') {
    if (isWithheld === true) return [name, [{ kind: 'refused', reason: 'withheld' }]];
    if (servedByOther) return [name, [{ kind: 'refused', reason: 'in-use' }]];
    return [
      { kind: 'reserved', ownerId: by, groupKeyHash: null, openTunnels: 0, lastUsedAt: null },
      [{ kind: 'reserved', ownerId: by }],
    ];
  }
  if (name.ownerId !== by) return [name, [{ kind: 'refused', reason: 'in-use' }]];
  if (name.kind === 'reserved') return [name, []];
  return [{ ...ownedOf(name), isAssigned: undefined, kind: 'reserved' }, [{ kind: 'reserved', ownerId: by }]];
};

/** A released name is open only to its last account, so the group key no longer works. */
const released = (name: Exclude<NameOwnership, { kind: 'free' }>, now: number, rules: NameRules): Step => {
  if (name.kind === 'released') return [name, []];
  const releasedAt = name.openTunnels > 0 ? null : now;
  const next: NameOwnership = { ...ownedOf(name), kind: 'released', groupKeyHash: null, releasedAt };
  const effects: NameEffect[] = [
    ...(name.kind === 'reserved' ? [{ kind: 'unreserved' } as const] : []),
    { kind: 'released' },
  ];
  const after = nameAt(next, now, rules);
  return [after, [...effects, ...effectsOfTime(next, after)]];
};

const ownedOf = ({ ownerId, groupKeyHash, openTunnels, lastUsedAt, isAssigned }: Owned): Owned => ({
  ownerId,
  groupKeyHash,
  openTunnels,
  lastUsedAt,
  ...assignedMark(isAssigned === true),
});

const assignedMark = (isAssigned: boolean): Pick<Owned, 'isAssigned'> => (isAssigned ? { isAssigned } : {});

const effectsOfTime = (before: NameOwnership, after: NameOwnership): readonly NameEffect[] => {
  if (before.kind === after.kind) return [];
  return [{ kind: after.kind === 'free' ? 'freed' : 'released' }];
};

/** Fields that order the held names of an account, least recently used first. */
export interface HeldName {
  readonly openTunnels: number;
  /** Time when the name's last tunnel ended. Null while the first tunnel is open. */
  readonly lastUsedAt: number | null;
}

/** Returns the held names beyond the limit: the least recently used, and names in use only if all are in use. */
export const crowdedOut = <T extends HeldName>(held: readonly T[]): readonly T[] => {
  const over = held.length - RULE_LIMITS.HELD_NAMES_PER_ACCOUNT_MAX;
  if (over <= 0) return [];
  return held.toSorted(byLastUse).slice(0, over);
};

const byLastUse = (a: HeldName, b: HeldName): number => {
  const inUse = Number(a.openTunnels > 0) - Number(b.openTunnels > 0);
  return inUse === 0 ? (a.lastUsedAt ?? LATEST) - (b.lastUsedAt ?? LATEST) : inUse;
};

const LATEST = Number.MAX_SAFE_INTEGER;
