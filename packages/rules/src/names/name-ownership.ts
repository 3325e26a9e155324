import { RULE_LIMITS } from '../limits.ts';

// Whose a name is, for months: the life of one subdomain or port, whoever keeps its row. Who serves it at the moment, for seconds, is a lease.
// First use claims a subdomain, reserving keeps it; what ran out or was given back stays out of strangers' hands for a while.

interface Owned {
  readonly ownerId: string;
  /** Of the last group that its owner opened here: whoever has that key may open the name again, so that a pool of two accounts restarts in any order. */
  readonly groupKeyHash: string | null;
  /** Tunnels that serve it now, nested ones included. */
  readonly openTunnels: number;
  /** null: no tunnel of it has ended yet. */
  readonly lastUsedAt: number | null;
  /** true: the edge chose the name, and its account has not asked for it by name since. Such a name is held for a shorter time. */
  readonly isAssigned?: true | undefined;
}

export type NameOwnership =
  | { readonly kind: 'free' }
  /** By use. Its time runs from the end of the last tunnel. */
  | ({ readonly kind: 'held' } & Owned)
  /** By an explicit act. It never ends by itself. */
  | ({ readonly kind: 'reserved' } & Owned)
  /** Given back or run out. null: its time runs once its tunnels have ended. */
  | ({ readonly kind: 'released'; readonly releasedAt: number | null } & Owned);

export interface NameRules {
  /** 0: use claims nothing, as for ports, which are scarce. */
  readonly holdMs: number;
  /** How long a name that the edge chose is held. Left out: as long as a name that an account chose. */
  readonly assignedHoldMs?: number;
  /** 0: what is released is anybody's at once. */
  readonly graceMs: number;
  /** true: accounts cannot claim the name while it is free. The current owner keeps the name. */
  readonly isWithheld?: boolean;
}

export type NameEvent =
  | {
      readonly kind: 'tunnel-opened';
      readonly by: string;
      readonly groupKeyHash: string | null;
      /** A living group has let it in by its key: counted, and nothing else. */
      readonly joinsGroup: boolean;
      /** true: the edge chose the name, in this run of the client or in an earlier one. */
      readonly isAssigned?: boolean;
    }
  /** `abandoned`: it was let in and then found no place, so nobody was ever served. */
  | { readonly kind: 'tunnel-ended'; readonly abandoned: boolean }
  /** `servedByOther`: a tunnel of another account is there now, which claims nothing. */
  | { readonly kind: 'reserve'; readonly by: string; readonly servedByOther: boolean }
  | { readonly kind: 'release'; readonly by: string }
  /** Its account holds too many, and has not used this one for longest. */
  | { readonly kind: 'crowded-out' }
  | { readonly kind: 'time-passed' };

export type NameRefusal = 'in-use' | 'group-key' | 'withheld';

export type NameEffect =
  | { readonly kind: 'refused'; readonly reason: NameRefusal }
  /** It is this account's from now on. */
  | { readonly kind: 'claimed'; readonly ownerId: string }
  | { readonly kind: 'reserved'; readonly ownerId: string }
  /** It was reserved and is not any more. */
  | { readonly kind: 'unreserved' }
  | { readonly kind: 'released' }
  | { readonly kind: 'freed' };

type Step = readonly [NameOwnership, readonly NameEffect[]];

export const FREE_NAME: NameOwnership = { kind: 'free' };

/** `a.shop` and `*.shop` belong to the owner of `shop`. */
export const owningLabel = (label: string): string => label.slice(label.lastIndexOf('.') + 1);

/** null: it has no end as it is now. */
export const nameEndsAt = (name: NameOwnership, rules: NameRules): number | null => {
  if (name.kind === 'free' || name.kind === 'reserved' || name.openTunnels > 0) return null;
  if (name.kind === 'held') return name.lastUsedAt === null ? null : name.lastUsedAt + holdMsOf(name, rules);
  return name.releasedAt === null ? null : name.releasedAt + rules.graceMs;
};

/** How long a name is held after its last tunnel has ended. */
export const holdMsOf = ({ isAssigned }: Pick<Owned, 'isAssigned'>, rules: NameRules): number =>
  isAssigned === true ? (rules.assignedHoldMs ?? rules.holdMs) : rules.holdMs;

/** What time alone has made of it. A name whose row nobody looked at for long ends when it would have ended. */
export const nameAt = (name: NameOwnership, now: number, rules: NameRules): NameOwnership => {
  const endsAt = nameEndsAt(name, rules);
  if (name.kind === 'free' || endsAt === null || now < endsAt) return name;
  // Without a hold there is nothing to run out: as it was before names lasted.
  if (name.kind === 'released' || rules.holdMs === 0) return FREE_NAME;
  return nameAt({ ...name, kind: 'released', groupKeyHash: null, releasedAt: endsAt }, now, rules);
};

/** `by` null: the operator, who owns no name and takes none from an account. */
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
    // A name that its account asks for is a chosen name from then on.
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
  // Claimed for a tunnel that never was: an attempt must not take a name from those who come after it.
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

/** What is released is its last account's alone, so the group's key opens it no more. */
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

/** What orders the held names of one account: the least missed first. */
export interface HeldName {
  readonly openTunnels: number;
  /** null: its first tunnel serves it. */
  readonly lastUsedAt: number | null;
}

/** Which of an account's held names, oldest first, are too many: the longest unused, and one in use only when all are. */
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
