// Random subscription histories at the processor, read at random times: the stored state matches the processor, and no effect is
// repeated.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  NO_SUBSCRIPTION,
  nextSubscription,
  type SubscriptionEffect,
  type SubscriptionFacts,
  type SubscriptionState,
} from './subscription.rules.ts';

const START = Date.UTC(2030, 5, 15);
const MONTH_MS = 30 * 86_400_000;

/** A change of the subscription at the processor. */
type Move = 'subscribe' | 'set-to-end' | 'keep' | 'fail' | 'pay' | 'end' | 'renew';

interface Step {
  readonly move: Move;
  /** Number of times the platform reads the subscription after the change. */
  readonly looks: number;
  readonly elapsedMs: number;
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    move: fc.constantFrom<Move>('subscribe', 'set-to-end', 'keep', 'fail', 'pay', 'end', 'renew'),
    looks: fc.nat(3),
    elapsedMs: fc.nat(2 * 86_400_000),
  }),
  { maxLength: 40, size: 'max' },
);

const moved = (facts: SubscriptionFacts | null, move: Move, now: number, count: number): SubscriptionFacts | null => {
  const isOver = facts === null || facts.status === 'canceled';
  if (move === 'subscribe') {
    if (!isOver) return facts;
    const id = `sub_${count}`;
    return { id, status: 'active', cancelsAtPeriodEnd: false, periodEnd: now + MONTH_MS, startedAt: now };
  }
  if (facts === null || isOver) return facts;
  if (move === 'set-to-end') return { ...facts, cancelsAtPeriodEnd: true };
  if (move === 'keep') return { ...facts, cancelsAtPeriodEnd: false };
  if (move === 'fail') return { ...facts, status: 'past_due' };
  if (move === 'pay') return { ...facts, status: 'active' };
  if (move === 'renew' && !facts.cancelsAtPeriodEnd)
    return { ...facts, periodEnd: (facts.periodEnd ?? now) + MONTH_MS };
  return { ...facts, status: 'canceled' };
};

/** Performs the effects as the platform does, and checks that no effect is repeated. */
class AccountDriver {
  held: SubscriptionState = NO_SUBSCRIPTION;
  plan: 'payg' | 'free' = 'free';
  mails = 0;
  readonly #minimums = new Set<string>();
  /** IDs of the subscriptions seen before their end. */
  readonly #lived = new Set<string>();

  look(facts: SubscriptionFacts | null, now: number): void {
    const { state, effects } = nextSubscription(this.held, facts, now);
    for (const effect of effects) this.#perform(effect);
    this.held = state;
    expect(nextSubscription(state, facts, now + 1)).toEqual({ state, effects: [] });
    this.#check(facts);
  }

  #perform(effect: SubscriptionEffect): void {
    if (effect.kind === 'set-plan') {
      expect(effect.plan).not.toBe(this.plan);
      this.plan = effect.plan;
    } else if (effect.kind === 'mail-payment-failed') this.mails += 1;
    else if (effect.kind === 'set-final-minimum') {
      const item = `${effect.subscriptionId} ${effect.periodEnd}`;
      expect(this.#minimums.has(item)).toBe(!effect.wanted);
      if (effect.wanted) this.#minimums.add(item);
      else this.#minimums.delete(item);
    }
  }

  #check(facts: SubscriptionFacts | null): void {
    if (facts !== null) this.#checkMinimum(facts);
    const lives = facts !== null && facts.status !== 'canceled';
    const { held } = this;
    expect(this.plan).toBe(lives ? 'payg' : 'free');
    expect(held.meteredFrom).toBe(lives ? facts.startedAt : null);
    expect(held.pastDueSince !== null).toBe(facts?.status === 'past_due');
    expect(held.pastDueMailedAt !== null).toBe(facts?.status === 'past_due');
  }

  /** Checks that a subscription owes exactly one final minimum after its scheduled end, even if the schedule was never seen. */
  #checkMinimum({ id, status, cancelsAtPeriodEnd, periodEnd }: SubscriptionFacts): void {
    if (status !== 'canceled') this.#lived.add(id);
    if (!this.#lived.has(id)) return;
    const items = [...this.#minimums].filter((item) => item.startsWith(`${id} `));
    if (status !== 'canceled') expect(items).toEqual(cancelsAtPeriodEnd ? [`${id} ${periodEnd}`] : []);
    else if (cancelsAtPeriodEnd) expect(items).toHaveLength(1);
  }
}

it("the stored subscription matches the processor's, whenever and however often it is read", () => {
  fc.assert(
    fc.property(steps, (drawn) => {
      const often = new AccountDriver();
      const once = new AccountDriver();
      let facts = null as SubscriptionFacts | null;
      let now = START;
      let count = 0;
      let spells = 0;
      for (const { move, looks, elapsedMs } of drawn) {
        now += elapsedMs;
        const before = facts;
        facts = moved(facts, move, now, count);
        if (facts?.id !== before?.id) count += 1;
        if (facts?.status === 'past_due' && before?.status !== 'past_due') spells += 1;
        for (let look = 0; look < looks; look += 1) often.look(facts, now);
        expect(often.mails).toBeLessThanOrEqual(spells);
      }
      often.look(facts, now);
      once.look(facts, now);
      // The times of a past-due spell may differ, because the drivers read at different times.
      const { pastDueSince: _, pastDueMailedAt: __, ...end } = often.held;
      expect(once.held).toMatchObject(end);
      expect(once.plan).toBe(often.plan);
    }),
    { numRuns: 150 },
  );
});

it('the stored subscription depends only on the last facts read, in any mixture of repeated reads', () => {
  const some = fc.constantFrom<SubscriptionFacts>(
    ...(['active', 'past_due', 'canceled'] as const).flatMap((status) =>
      [true, false].map((cancelsAtPeriodEnd) => ({
        id: 'sub_1',
        status,
        cancelsAtPeriodEnd,
        periodEnd: START + MONTH_MS,
        startedAt: START,
      })),
    ),
  );
  fc.assert(
    fc.property(fc.array(some, { maxLength: 20 }), some, fc.integer({ min: 1, max: 3 }), (seen, last, times) => {
      const look = (held: SubscriptionState, facts: SubscriptionFacts) => nextSubscription(held, facts, START).state;
      const all = [...seen, ...Array.from({ length: times }, () => last)];
      // In any order of reads, only the last facts count.
      expect(all.reduce(look, NO_SUBSCRIPTION)).toEqual(look(NO_SUBSCRIPTION, last));
    }),
  );
});
