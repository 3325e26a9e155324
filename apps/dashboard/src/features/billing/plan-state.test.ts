import { expect, it } from 'vitest';
import { planStateOf } from './plan-state.ts';

const free = { billing_model: 'free', plan_name: 'free', subscription_status: null } as const;
const payg = { billing_model: 'payg', plan_name: 'payg', subscription_status: 'active' } as const;

it('a free plan offers to subscribe', () => {
  expect(planStateOf(free, null)).toMatchObject({ plan: 'Free plan', action: 'subscribe', warning: null });
});

it('an active subscription needs no action', () => {
  expect(planStateOf(payg, '1 Dec 2030')).toMatchObject({
    plan: 'Pay as you go',
    badge: { text: 'Active', tone: 'good' },
    action: 'none',
    warning: null,
  });
});

it('a past-due subscription says what to do and when tunnels stop', () => {
  const { warning, badge, action } = planStateOf({ ...payg, subscription_status: 'past_due' }, null);
  expect([badge.text, action]).toEqual(['Past due', 'pay']);
  expect(warning).toMatch(/tunnels stop 7 days .* until you pay/);
});

it('a canceled subscription says when it ends, and can be kept', () => {
  const { warning, action } = planStateOf({ ...payg, subscription_status: 'canceled' }, '1 Dec 2030');
  expect([action, warning?.includes('ends on 1 Dec 2030')]).toEqual(['keep', true]);
  expect(planStateOf({ ...payg, subscription_status: 'canceled' }, null).warning).toContain(
    'ends at the end of the paid period',
  );
});

it('an ended subscription is a free plan that can subscribe again', () => {
  expect(planStateOf({ ...free, subscription_status: 'canceled' }, null)).toMatchObject({
    badge: { text: 'Ended' },
    action: 'subscribe',
  });
});

it('plans with other names are shown by name', () => {
  expect(planStateOf({ ...payg, plan_name: 'team' }, null).plan).toBe('Pay as you go (team)');
  expect(planStateOf({ ...free, plan_name: 'guest' }, null).plan).toBe('Plan guest');
  expect(planStateOf({ ...payg, subscription_status: null }, null).badge.text).toBe('No subscription');
});
