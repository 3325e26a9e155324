import { expect, it } from 'vitest';
import { standingOf } from './standing.ts';

const free = { billing_model: 'free', plan_name: 'free', subscription_status: null } as const;
const payg = { billing_model: 'payg', plan_name: 'payg', subscription_status: 'active' } as const;

it('a free account may subscribe', () => {
  expect(standingOf(free, null)).toMatchObject({ plan: 'Free plan', action: 'subscribe', warning: null });
});

it('a subscription that lives needs nothing', () => {
  expect(standingOf(payg, '1 Dec 2030')).toMatchObject({
    plan: 'Pay as you go',
    badge: { text: 'Active', tone: 'good' },
    action: 'none',
    warning: null,
  });
});

it('past due: what to do, and what happens when', () => {
  const { warning, badge, action } = standingOf({ ...payg, subscription_status: 'past_due' }, null);
  expect([badge.text, action]).toEqual(['Past due', 'pay']);
  expect(warning).toMatch(/7 days .* new tunnels are refused/);
});

it('canceled, but still running: when it ends, and that it can be kept', () => {
  const { warning, action } = standingOf({ ...payg, subscription_status: 'canceled' }, '1 Dec 2030');
  expect([action, warning?.includes('ends on 1 Dec 2030')]).toEqual(['keep', true]);
  expect(standingOf({ ...payg, subscription_status: 'canceled' }, null).warning).toContain('ends with its period');
});

it('canceled and over: free, and can begin again', () => {
  expect(standingOf({ ...free, subscription_status: 'canceled' }, null)).toMatchObject({
    badge: { text: 'Ended' },
    action: 'subscribe',
  });
});

it('plans of other names are named', () => {
  expect(standingOf({ ...payg, plan_name: 'team' }, null).plan).toBe('Pay as you go (team)');
  expect(standingOf({ ...free, plan_name: 'guest' }, null).plan).toBe('Plan guest');
  expect(standingOf({ ...payg, subscription_status: null }, null).badge.text).toBe('No subscription');
});
