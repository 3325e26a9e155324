import type { BillingStatus } from '@tunnel/contract';
import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { BILLING } from '../platform/scripted-platform.fixture.ts';
import { billingLines } from './billing-lines.ts';
import { momentText } from './columns.ts';
import { centsOf, dollarsText } from './dollars.ts';

const PLAIN = pc.createColors(false);
const PAYG = BILLING as BillingStatus;
const linesOf = (more: Partial<BillingStatus> = {}): string[] =>
  billingLines({ ...PAYG, ...more }, { width: null, colours: PLAIN });
const rowOf = (name: string, more: Partial<BillingStatus> = {}): string =>
  linesOf(more)
    .find((line) => line.startsWith(`  ${name}`))
    ?.slice(`  ${name}`.length)
    .trim() ?? '';

it('says all of a plan that is paid for', () => {
  expect(linesOf()).toEqual([
    'plan payg: pay as you go',
    '  this month (UTC)  $12.40 so far, $3.00 at least',
    '  spend cap         $20.00  ████████████░░░░░░░░ 62 %',
    '  subscription      active',
    `  period ends       ${momentText('2030-02-01T00:00:00.000Z')}`,
    '  payment method    on file',
  ]);
});

it('says little of a plan that is free', () => {
  const free = {
    billing_model: 'free',
    plan_name: 'free',
    subscription_status: null,
    has_payment_method: false,
  } as const;
  expect(linesOf(free)).toEqual(['plan free: nothing is charged', '  payment method  none']);
  expect(linesOf({ ...free, subscription_status: 'canceled' })).toContain('  subscription    canceled');
});

describe('the cap', () => {
  it.each([
    [{ spend_cap_cents: null }, 'none'],
    [{ spend_cap_cents: 0 }, '$0.00: no usage is allowed'],
    [{ estimated_mtd_cents: 300, spend_cap_cents: 200 }, '$2.00 of usage; not more than $3.00 was used'],
    [{ estimated_mtd_cents: 301, spend_cap_cents: 100_000 }, '$1000.00  █░░░░░░░░░░░░░░░░░░░ 0 %'],
    [{ estimated_mtd_cents: 1999 }, '$20.00  ███████████████████░ 99 %'],
    [{ estimated_mtd_cents: 2000 }, '$20.00  ████████████████████ 100 %: reached, no tunnels'],
    [{ estimated_mtd_cents: 9000 }, '$20.00  ████████████████████ 450 %: reached, no tunnels'],
  ])('with %j is %s', (more, text) => {
    expect(rowOf('spend cap', more)).toBe(text);
  });
});

it.each([
  ['past_due', 'past due: the last payment failed; see `tunnel billing portal`'],
  ['canceled', 'canceled: the plan is free after the end of the period'],
  [null, 'none'],
] as const)('a subscription that is %s is said in words', (subscription_status, text) => {
  expect(rowOf('subscription', { subscription_status })).toBe(text);
});

it('no line is wider than the terminal', () => {
  for (const width of [30, 60, 200]) {
    const lines = billingLines({ ...PAYG, subscription_status: 'past_due' }, { width, colours: PLAIN });
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(width);
  }
});

it('dollars and cents are the same both ways', () => {
  for (const cents of [0, 1, 9, 10, 29, 57, 99, 100, 1999, 123_456, 99_999_999_999_999]) {
    expect(centsOf(dollarsText(cents))).toBe(cents);
  }
});
