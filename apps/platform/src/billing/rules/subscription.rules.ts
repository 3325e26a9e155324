// State machine of a subscription: none, active, ending (set to end with its period), past due, ended. The machine does not process
// events. It compares the current facts at the processor with the stored state and returns the changes. Webhooks can therefore arrive
// late, twice or in any order; only the final facts count.

/** Facts about a subscription at the payment processor. */
export interface SubscriptionFacts {
  readonly id: string;
  readonly status: 'active' | 'past_due' | 'canceled';
  /** True if the subscription ends with the current period. For a canceled subscription: true if it ended with a period. */
  readonly cancelsAtPeriodEnd: boolean;
  /** End of the current period. Times are in milliseconds since the epoch. */
  readonly periodEnd: number | null;
  readonly startedAt: number;
  /**
   * Time for which a past due subscription has been unpaid, by a test clock moved by hand. Absent without a test clock; the time then
   * counts from the first observation.
   */
  readonly unpaidMs?: number;
}

/** The stored state of an account's subscription. */
export interface SubscriptionState {
  readonly id: string | null;
  /** Status of the subscription as shown to the account's owner. */
  readonly status: 'active' | 'past_due' | 'canceled' | null;
  readonly cancelsAtPeriodEnd: boolean;
  readonly periodEnd: number | null;
  /** Start of metering. Earlier usage is never billed. */
  readonly meteredFrom: number | null;
  /** Time when the platform first saw the subscription past due. The grace period starts here. */
  readonly pastDueSince: number | null;
  /** Time when the mail about the current past due period was written. */
  readonly pastDueMailedAt: number | null;
}

export type SubscriptionEffect =
  | { readonly kind: 'set-plan'; readonly plan: 'payg' | 'free' }
  /** Notifies edges of the account's new entitlement. */
  | { readonly kind: 'announce-account' }
  | { readonly kind: 'mail-payment-failed' }
  /**
   * Sets the final minimum at the payment processor, because the last invoice of an ending subscription lacks the fixed price. Must run
   * before the state is stored, so that a failed call is repeated.
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

/** Grace period of a past due account. Afterwards, new tunnels are refused. */
export const PAST_DUE_GRACE_MS = 7 * 24 * 60 * 60 * 1000;

export const isGraceOver = (pastDueSince: number | null, now: number): boolean =>
  pastDueSince !== null && now >= pastDueSince + PAST_DUE_GRACE_MS;

/** Tolerated difference between two readings of a clock. */
const CLOCK_SLACK_MS = 60_000;

/**
 * Lets the grace period follow the processor's clock, which is moved by hand if it is a test clock. The payment failure is moved into the
 * past by the time that the test clock has advanced since the last reading. `aheadMs` is the lead of the processor's clock over the
 * platform's clock; null means that the clocks agree.
 */
export const followClock = <T extends { readonly pastDueSince: number | null; readonly aheadMs: number | null }>(
  held: T,
  aheadMs: number | null,
): T => {
  if (aheadMs === null || held.aheadMs === null) return { ...held, aheadMs };
  const movedMs = aheadMs - held.aheadMs;
  // Below the tolerance, the earlier reading stays the baseline, so that small measuring errors do not accumulate.
  if (held.pastDueSince === null || movedMs < CLOCK_SLACK_MS) return held;
  return { ...held, aheadMs, pastDueSince: held.pastDueSince - movedMs };
};

/** Computes the next state and the effects. `facts` is null if the processor has no subscription. */
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

/** Returns true for a live subscription. A subscription set to end is shown as canceled, but lives until the end of its period. */
const lives = ({ status, cancelsAtPeriodEnd }: SubscriptionState): boolean =>
  status === 'active' || status === 'past_due' || cancelsAtPeriodEnd;

const isSame = (held: SubscriptionState, state: SubscriptionState): boolean => held.id === state.id;

/**
 * Returns the changes of the final minimum. The minimum belongs to the end of one period: if the end moves to another period, the minimum
 * is removed at the old end and added at the new end.
 */
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
 * Handles a subscription that was set to end and has ended between two readings. The minimum can still be added to the draft of the last
 * invoice. If the end was known before, the minimum is already there.
 */
const ofUnseenEnd = (held: SubscriptionState, facts: SubscriptionFacts | null): SubscriptionEffect[] => {
  const wasSeen = !lives(held) || held.cancelsAtPeriodEnd || held.id !== facts?.id;
  if (wasSeen || facts.status !== 'canceled' || !facts.cancelsAtPeriodEnd || facts.periodEnd === null) return [];
  const { id: subscriptionId, periodEnd } = facts;
  return [{ kind: 'set-final-minimum', subscriptionId, periodEnd, wanted: true }];
};

/** Sets the plan at the start and the end of a subscription, but not in between, because an operator may have assigned a different plan. */
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
