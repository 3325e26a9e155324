import type { BillingStatus } from '@tunnel/contract';
import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { BILLING } from '../platform/scripted-platform.fixture.ts';
import { billingLines } from './billing-lines.ts';
import { momentText } from './columns.ts';
import { centsOf, dollarsText } from './dollars.ts';

const PLAIN = pc.createColors(false);
const PAYG = BILLING as BillingStatus;
const linesOf = (more: Partial<BillingStatus> = {}, usedCents = PAYG.estimated_mtd_cents): string[] =>
  billingLines({ status: { ...PAYG, ...more }, usedCents }, { width: null, colours: PLAIN });
const rowOf = (name: string, more: Partial<BillingStatus> = {}, usedCents?: number): string =>
  linesOf(more, usedCents)
    .find((line) => line.startsWith(`  ${name}`))
    ?.slice(`  ${name}`.length)
    .trim() ?? '';

it('says all of a plan that is paid for', () => {
  expect(linesOf()).toEqual([
    'plan payg: pay as you go',
    '  this month (UTC)  $12.40 so far, $3.00 at least',
    '  spend cap         $20.00  ████████████░░░░░░░░ 62 % ($12.40 of usage)',
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
    [null, 1240, 'none'],
    [0, 0, '$0.00: no usage is allowed'],
    [200, 0, '$2.00  ░░░░░░░░░░░░░░░░░░░░ 0 % ($0.00 of usage)'],
    [200, 123, '$2.00  ████████████░░░░░░░░ 61 % ($1.23 of usage)'],
    [200, 200, '$2.00  ████████████████████ 100 %: reached, no tunnels'],
    [100_000, 301, '$1000.00  █░░░░░░░░░░░░░░░░░░░ 0 % ($3.01 of usage)'],
    [2000, 1999, '$20.00  ███████████████████░ 99 % ($19.99 of usage)'],
    [2000, 9000, '$20.00  ████████████████████ 450 %: reached, no tunnels'],
  ])('of %j with %j used is %s', (spend_cap_cents, used, text) => {
    expect(rowOf('spend cap', { spend_cap_cents }, used)).toBe(text);
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
    const lines = billingLines(
      { status: { ...PAYG, subscription_status: 'past_due' }, usedCents: 1240 },
      { width, colours: PLAIN },
    );
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(width);
  }
});

it('dollars and cents are the same both ways', () => {
  for (const cents of [0, 1, 9, 10, 29, 57, 99, 100, 1999, 123_456, 99_999_999_999_999]) {
    expect(centsOf(dollarsText(cents))).toBe(cents);
  }
});
