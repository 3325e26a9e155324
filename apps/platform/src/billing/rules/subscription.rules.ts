// The life of a subscription: none, active, ending (set to end with its period), past due, ended. What happened is never asked
// for: the machine is given what holds at the processor now, and says what that makes of what we hold. So news may come late,
// twice or in any order; only what holds in the end counts.

/** What the processor says. */
export interface SubscriptionFacts {
  readonly id: string;
  readonly status: 'active' | 'past_due' | 'canceled';
  /** Of one that is canceled: it did. */
  readonly cancelsAtPeriodEnd: boolean;
  /** Times in milliseconds since the epoch. */
  readonly periodEnd: number | null;
  readonly startedAt: number;
  /** Of one that is past due on a clock that is moved by hand: how long by that clock. Absent: since it is seen. */
  readonly unpaidMs?: number;
}

/** What we hold of it. */
export interface SubscriptionState {
  readonly id: string | null;
  /** As the account is shown it. */
  readonly status: 'active' | 'past_due' | 'canceled' | null;
  readonly cancelsAtPeriodEnd: boolean;
  readonly periodEnd: number | null;
  /** What was used before is never billed. */
  readonly meteredFrom: number | null;
  /** When we first saw it past due; the grace counts from there. */
  readonly pastDueSince: number | null;
  /** When the mail of this spell was written. */
  readonly pastDueMailedAt: number | null;
}

export type SubscriptionEffect =
  | { readonly kind: 'set-plan'; readonly plan: 'payg' | 'free' }
  /** Edges are to be told what the account may do now. */
  | { readonly kind: 'announce-account' }
  | { readonly kind: 'mail-payment-failed' }
  /**
   * At the processor: its last invoice of an ending subscription lacks the fixed price. To be done before the state is stored,
   * so that what failed is done again.
   */
  | {
      readonly kind: 'set-final-minimum';
      readonly subscriptionId: string;
      readonly periodEnd: number;
      readonly wanted: boolean;
    }
  | { readonly kind: 'audit'; readonly action: SubscriptionAction };

type SubscriptionAction =
  | 'billing.subscription-started'
  | 'billing.subscription-set-to-end'
  | 'billing.subscription-kept'
  | 'billing.subscription-ended'
  | 'billing.payment-failed'
  | 'billing.payment-recovered';

export interface SubscriptionStep {
  readonly state: SubscriptionState;
  readonly effects: readonly SubscriptionEffect[];
}

export const NO_SUBSCRIPTION: SubscriptionState = {
  id: null,
  status: null,
  cancelsAtPeriodEnd: false,
  periodEnd: null,
  meteredFrom: null,
  pastDueSince: null,
  pastDueMailedAt: null,
};

/** An account that does not pay goes on for so long before new tunnels are refused. */
export const PAST_DUE_GRACE_MS = 7 * 24 * 60 * 60 * 1000;

export const isGraceOver = (pastDueSince: number | null, now: number): boolean =>
  pastDueSince !== null && now >= pastDueSince + PAST_DUE_GRACE_MS;

/** What two looks at one clock may differ by. */
const CLOCK_SLACK_MS = 60_000;

/**
 * The days of grace pass as the processor's clock does, which on a test clock is moved by hand: by what it went ahead of ours since
 * the last look, the payment failed longer ago. `aheadMs`: how far it is ahead now and was then; null: it goes as ours does.
 */
export const followClock = <T extends { readonly pastDueSince: number | null; readonly aheadMs: number | null }>(
  held: T,
  aheadMs: number | null,
): T => {
  if (aheadMs === null || held.aheadMs === null) return { ...held, aheadMs };
  const movedMs = aheadMs - held.aheadMs;
  // The looked-at time is kept, so that many small differences do not add up.
  if (held.pastDueSince === null || movedMs < CLOCK_SLACK_MS) return held;
  return { ...held, aheadMs, pastDueSince: held.pastDueSince - movedMs };
};

/** `facts` null: the processor knows of none. */
export const nextSubscription = (
  held: SubscriptionState,
  facts: SubscriptionFacts | null,
  now: number,
): SubscriptionStep => {
  const state = stateOf(held, facts, now);
  const effects = [
    ...atTheProcessor(held, state),
    ...ofUnseenEnd(held, facts),
    ...ofThePlan(held, state),
    ...audits(held, state),
  ];
  if (state.pastDueMailedAt !== null && !(isSame(held, state) && held.pastDueMailedAt !== null)) {
    effects.push({ kind: 'mail-payment-failed' });
  }
  return { state, effects };
};

const stateOf = (held: SubscriptionState, facts: SubscriptionFacts | null, now: number): SubscriptionState => {
  if (facts === null) return lives(held) ? { ...NO_SUBSCRIPTION, id: held.id, status: 'canceled' } : held;
  const { id, cancelsAtPeriodEnd, periodEnd } = facts;
  if (facts.status === 'canceled') return { ...NO_SUBSCRIPTION, id, status: 'canceled' };
  const living = { id, cancelsAtPeriodEnd, periodEnd, meteredFrom: facts.startedAt };
  if (facts.status === 'active') {
    const status = cancelsAtPeriodEnd ? 'canceled' : 'active';
    return { ...living, status, pastDueSince: null, pastDueMailedAt: null };
  }
  const spell = held.id === id ? held : NO_SUBSCRIPTION;
  return {
    ...living,
    status: 'past_due',
    pastDueSince: spell.pastDueSince ?? now - (facts.unpaidMs ?? 0),
    pastDueMailedAt: spell.pastDueMailedAt ?? now,
  };
};

/** One that is set to end is shown as canceled, and lives until then. */
const lives = ({ status, cancelsAtPeriodEnd }: SubscriptionState): boolean =>
  status === 'active' || status === 'past_due' || cancelsAtPeriodEnd;

const isSame = (held: SubscriptionState, state: SubscriptionState): boolean => held.id === state.id;

/** It belongs to one end of a period: one that is to be at another end is taken away at the first. */
const atTheProcessor = (held: SubscriptionState, state: SubscriptionState): SubscriptionEffect[] => {
  if (state.id === null || !lives(state)) return [];
  const before = isSame(held, state) && held.cancelsAtPeriodEnd ? held.periodEnd : null;
  const after = state.cancelsAtPeriodEnd ? state.periodEnd : null;
  if (before === after) return [];
  const set = { kind: 'set-final-minimum', subscriptionId: state.id } as const;
  return [
    ...(before === null ? [] : [{ ...set, periodEnd: before, wanted: false }]),
    ...(after === null ? [] : [{ ...set, periodEnd: after, wanted: true }]),
  ];
};

/**
 * Set to end, and ended, since we last looked: the minimum can still go on the draft of its last invoice. Of one that we knew to
 * end it is there already.
 */
const ofUnseenEnd = (held: SubscriptionState, facts: SubscriptionFacts | null): SubscriptionEffect[] => {
  const wasSeen = !lives(held) || held.cancelsAtPeriodEnd || held.id !== facts?.id;
  if (wasSeen || facts.status !== 'canceled' || !facts.cancelsAtPeriodEnd || facts.periodEnd === null) return [];
  const { id: subscriptionId, periodEnd } = facts;
  return [{ kind: 'set-final-minimum', subscriptionId, periodEnd, wanted: true }];
};

/** Set when it begins and when it ends, and not in between: an operator may give the account another one. */
const ofThePlan = (held: SubscriptionState, state: SubscriptionState): SubscriptionEffect[] => {
  if (lives(held) !== lives(state)) {
    return [{ kind: 'set-plan', plan: lives(state) ? 'payg' : 'free' }, { kind: 'announce-account' }];
  }
  const isPaidAgain = held.pastDueSince !== null && state.pastDueSince === null;
  return isPaidAgain ? [{ kind: 'announce-account' }] : [];
};

const audits = (held: SubscriptionState, state: SubscriptionState): SubscriptionEffect[] => {
  const goesOn = isSame(held, state) && lives(held) && lives(state);
  const before = goesOn ? held : NO_SUBSCRIPTION;
  const was = { ending: before.cancelsAtPeriodEnd, pastDue: before.pastDueSince !== null };
  const is = { ending: state.cancelsAtPeriodEnd, pastDue: state.pastDueSince !== null };
  const happened: Readonly<Record<SubscriptionAction, boolean>> = {
    'billing.subscription-ended': lives(held) && !goesOn,
    'billing.subscription-started': lives(state) && !goesOn,
    'billing.subscription-set-to-end': is.ending && !was.ending,
    'billing.subscription-kept': was.ending && !is.ending,
    'billing.payment-failed': is.pastDue && !was.pastDue,
    'billing.payment-recovered': was.pastDue && !is.pastDue,
  };
  const actions = (Object.keys(happened) as SubscriptionAction[]).filter((action) => happened[action]);
  return actions.map((action) => ({ kind: 'audit', action }));
};
