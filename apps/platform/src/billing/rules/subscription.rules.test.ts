import { describe, expect, it } from 'vitest';
import {
  followClock,
  isGraceOver,
  NO_SUBSCRIPTION,
  nextSubscription,
  PAST_DUE_GRACE_MS,
  type SubscriptionFacts,
  type SubscriptionState,
} from './subscription.rules.ts';

const NOW = Date.UTC(2030, 5, 15);
const END = Date.UTC(2030, 6, 1);
const FACTS: SubscriptionFacts = {
  id: 'sub_1',
  status: 'active',
  cancelsAtPeriodEnd: false,
  periodEnd: END,
  startedAt: NOW - 1000,
};
const facts = (more: Partial<SubscriptionFacts> = {}): SubscriptionFacts => ({ ...FACTS, ...more });
const after = (...all: (SubscriptionFacts | null)[]): SubscriptionState =>
  all.reduce<SubscriptionState>((held, one) => nextSubscription(held, one, NOW).state, NO_SUBSCRIPTION);

const ACTIVE = after(facts());
const ENDING = after(facts({ cancelsAtPeriodEnd: true }));
const PAST_DUE = after(facts({ status: 'past_due' }));
const ENDED = after(facts(), facts({ status: 'canceled' }));

const kindsOf = (held: SubscriptionState, told: SubscriptionFacts): string[] =>
  nextSubscription(held, told, NOW).effects.map(({ kind }) => kind);
const audit = (action: string) => ({ kind: 'audit', action });
const PAYG = [{ kind: 'set-plan', plan: 'payg' }, { kind: 'announce-account' }];
const FREE = [{ kind: 'set-plan', plan: 'free' }, { kind: 'announce-account' }];
const finalMinimum = (wanted: boolean) => ({
  kind: 'set-final-minimum',
  subscriptionId: 'sub_1',
  periodEnd: END,
  wanted,
});

describe('a subscription', () => {
  it('starts the paid plan, and metering from its start', () => {
    const { state, effects } = nextSubscription(NO_SUBSCRIPTION, facts(), NOW);
    expect(state).toEqual({
      ...NO_SUBSCRIPTION,
      id: 'sub_1',
      status: 'active',
      periodEnd: END,
      meteredFrom: NOW - 1000,
    });
    expect(effects).toEqual([...PAYG, audit('billing.subscription-started')]);
  });

  it('scheduled to end is shown as canceled, keeps the plan, and owes a final minimum', () => {
    const { state, effects } = nextSubscription(ACTIVE, facts({ cancelsAtPeriodEnd: true }), NOW);
    expect(state).toEqual({ ...ACTIVE, status: 'canceled', cancelsAtPeriodEnd: true });
    expect(effects).toEqual([finalMinimum(true), audit('billing.subscription-set-to-end')]);
  });

  it('kept after a scheduled end owes no final minimum', () => {
    const { state, effects } = nextSubscription(ENDING, facts(), NOW);
    expect(state).toEqual(ACTIVE);
    expect(effects).toEqual([finalMinimum(false), audit('billing.subscription-kept')]);
  });

  it('with an unnoticed later end owes its final minimum at the later end', () => {
    const later = END + 31 * 86_400_000;
    const { effects } = nextSubscription(ENDING, facts({ cancelsAtPeriodEnd: true, periodEnd: later }), NOW);
    expect(effects).toEqual([finalMinimum(false), { ...finalMinimum(true), periodEnd: later }]);
  });

  it('owes a final minimum after an unnoticed scheduled end, but not after an immediate end', () => {
    const ended = facts({ status: 'canceled', cancelsAtPeriodEnd: true });
    for (const held of [ACTIVE, PAST_DUE]) {
      expect(nextSubscription(held, ended, NOW).effects).toContainEqual(finalMinimum(true));
    }
    for (const held of [NO_SUBSCRIPTION, ENDING, ENDED, { ...ACTIVE, id: 'sub_0' }]) {
      expect(kindsOf(held, ended)).not.toContain('set-final-minimum');
    }
    expect(kindsOf(ACTIVE, facts({ status: 'canceled' }))).not.toContain('set-final-minimum');
  });

  it('that has ended returns the account to the free plan and stops metering', () => {
    for (const held of [ACTIVE, ENDING, PAST_DUE]) {
      const { state, effects } = nextSubscription(held, facts({ status: 'canceled' }), NOW);
      expect(state).toEqual({ ...NO_SUBSCRIPTION, id: 'sub_1', status: 'canceled' });
      expect(effects).toEqual([...FREE, audit('billing.subscription-ended')]);
    }
  });

  it('unknown to the processor counts as ended', () => {
    expect(nextSubscription(ACTIVE, null, NOW)).toEqual({
      state: ENDED,
      effects: [...FREE, audit('billing.subscription-ended')],
    });
    expect(nextSubscription(NO_SUBSCRIPTION, null, NOW)).toEqual({ state: NO_SUBSCRIPTION, effects: [] });
    expect(nextSubscription(ENDED, null, NOW)).toEqual({ state: ENDED, effects: [] });
  });

  it('with an end before the first read leaves the plan unchanged', () => {
    expect(nextSubscription(NO_SUBSCRIPTION, facts({ status: 'canceled' }), NOW)).toEqual({
      state: ENDED,
      effects: [],
    });
  });

  it('with a new ID starts again after the previous one ended', () => {
    const { state, effects } = nextSubscription(ENDED, facts({ id: 'sub_2', startedAt: NOW }), NOW);
    expect(state).toMatchObject({ id: 'sub_2', status: 'active', meteredFrom: NOW });
    expect(effects).toEqual([...PAYG, audit('billing.subscription-started')]);
  });

  it('in place of a previous subscription keeps the plan', () => {
    const { state, effects } = nextSubscription(PAST_DUE, facts({ id: 'sub_2', status: 'past_due' }), NOW + 5);
    expect(state).toMatchObject({ id: 'sub_2', status: 'past_due', pastDueSince: NOW + 5, pastDueMailedAt: NOW + 5 });
    expect(effects).toEqual([
      audit('billing.subscription-ended'),
      audit('billing.subscription-started'),
      audit('billing.payment-failed'),
      { kind: 'mail-payment-failed' },
    ]);
  });
});

describe('a failed payment', () => {
  it('is mailed once, and the grace period counts from its first sighting', () => {
    const first = nextSubscription(ACTIVE, facts({ status: 'past_due' }), NOW);
    expect(first.state).toEqual({ ...ACTIVE, status: 'past_due', pastDueSince: NOW, pastDueMailedAt: NOW });
    expect(first.effects).toEqual([audit('billing.payment-failed'), { kind: 'mail-payment-failed' }]);
    const again = nextSubscription(first.state, facts({ status: 'past_due' }), NOW + 1000);
    expect(again).toEqual({ state: first.state, effects: [] });
  });

  it('is forgotten once paid, and the next failure is mailed again', () => {
    const paid = nextSubscription(PAST_DUE, facts(), NOW + 1);
    expect(paid).toEqual({
      state: ACTIVE,
      effects: [{ kind: 'announce-account' }, audit('billing.payment-recovered')],
    });
    const later = nextSubscription(paid.state, facts({ status: 'past_due' }), NOW + 2);
    expect(later.state.pastDueSince).toBe(NOW + 2);
    expect(later.effects).toContainEqual({ kind: 'mail-payment-failed' });
  });

  it('of a subscription scheduled to end is shown as past due', () => {
    const both = facts({ status: 'past_due', cancelsAtPeriodEnd: true });
    const { state, effects } = nextSubscription(ENDING, both, NOW);
    expect(state).toMatchObject({ status: 'past_due', cancelsAtPeriodEnd: true, pastDueSince: NOW });
    // The final minimum was added when the end was scheduled.
    expect(effects).not.toContainEqual(finalMinimum(true));
  });

  it('allows seven days of grace', () => {
    expect(isGraceOver(null, NOW)).toBe(false);
    expect(isGraceOver(NOW, NOW)).toBe(false);
    expect(isGraceOver(NOW, NOW + PAST_DUE_GRACE_MS - 1)).toBe(false);
    expect(isGraceOver(NOW, NOW + PAST_DUE_GRACE_MS)).toBe(true);
    expect(PAST_DUE_GRACE_MS).toBe(604_800_000);
  });
});

describe('the grace period on a manually advanced test clock', () => {
  const held = { pastDueSince: NOW, aheadMs: 5000 };

  it('passes as the test clock does', () => {
    const moved = followClock(held, 5000 + PAST_DUE_GRACE_MS);
    expect(moved).toEqual({ pastDueSince: NOW - PAST_DUE_GRACE_MS, aheadMs: 5000 + PAST_DUE_GRACE_MS });
    expect(followClock(moved, 5000 + PAST_DUE_GRACE_MS)).toEqual(moved);
  });

  it('counts from the failure even if it was noticed after the clock moved', () => {
    const late = (unpaidMs: number) => facts({ status: 'past_due', unpaidMs });
    const first = nextSubscription(NO_SUBSCRIPTION, late(5000), NOW).state;
    expect([first.pastDueSince, first.pastDueMailedAt]).toEqual([NOW - 5000, NOW]);
    expect(nextSubscription(first, late(9000), NOW + 1).state.pastDueSince).toBe(NOW - 5000);
  });

  it('is not shifted by small differences between reads, by the first read, or by a normal clock', () => {
    expect(followClock(held, 64_999)).toEqual(held);
    expect(followClock(held, 0)).toEqual(held);
    expect(followClock({ pastDueSince: NOW, aheadMs: null }, 9e9)).toEqual({ pastDueSince: NOW, aheadMs: 9e9 });
    expect(followClock(held, null)).toEqual({ pastDueSince: NOW, aheadMs: null });
  });
});
