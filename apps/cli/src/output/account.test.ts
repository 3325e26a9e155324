import type { BillingStatus } from '@tunnel/contract';
import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { BILLING } from '../api/scripted-platform.fixture.ts';
import { billingLines, type Usage, usageLines } from './account.ts';
import { chartLines, dollarsText, momentText, parseCents } from './text.ts';

const days = (values: number[]) =>
  values.map((value, at) => ({ date: `2030-01-${String(at + 1).padStart(2, '0')}`, value }));

describe('a usage chart', () => {
  it('has a column for each day, scaled to the highest value', () => {
    expect(chartLines('requests per day', days([0, 8, 16, 32, 1]), { width: 18, colours: PLAIN })).toEqual([
      'requests per day, last 5 days',
      '  32 │      █',
      '     │      █',
      '     │    █ █',
      '     │  █ █ █ ▁',
      '   0 └──────────',
      '      01-05',
    ]);
  });

  it('drops the oldest days when there is no room, and states the number of days shown', () => {
    const [title, ...rows] = chartLines('x', days(Array.from({ length: 31 }, (_, at) => at)), {
      width: 20,
      colours: PLAIN,
    });
    expect(title).toBe('x, last 13 days');
    expect(Math.max(...rows.map((row) => row.length))).toBeLessThan(20);
    expect(rows.at(-1)).toBe('      01-19   01-31');
  });

  it.each([[[]], [[0]], [[0, 0]], [[5]]])('is also drawn for the values %j', (values) => {
    for (const width of [1, 20, 200]) {
      const lines = chartLines('x', days(values), { width, colours: PLAIN });
      expect(lines.join('\n')).not.toMatch(/NaN|undefined/);
      expect(lines).toHaveLength(7);
    }
  });
});

const USAGE: Usage = {
  summary: {
    active_tunnels: 1,
    total_tunnels_30d: 17,
    total_requests_30d: 1204,
    total_bytes_30d: 48_201_733,
    plan: 'free',
    tunnel_limit: 3,
  },
  chart: [
    { date: '2030-01-01', tunnels: 1, requests: 0, bytes: 0 },
    { date: '2030-01-02', tunnels: 2, requests: 310, bytes: 0 },
  ],
  tunnels: [
    {
      id: 'a',
      tunnel_id: 'tun_a',
      protocol: 'tcp',
      label: '20007',
      registered_at: '2030-01-02T00:00:00.000Z',
      unregistered_at: null,
      region_id: 'local',
      request_count: 1,
      bytes_proxied: 4096,
    },
  ],
};

describe('the usage report', () => {
  it('is a plain list without a terminal', () => {
    const lines = usageLines(USAGE, { width: null, colours: PLAIN });
    expect(lines.slice(0, 6)).toEqual([
      'plan free: 1 of 3 tunnels open',
      'last 30 days: 17 tunnels, 1204 requests, 48.2 MB',
      '',
      'days (UTC)',
      '  2030-01-01  0 requests    1 tunnel',
      '  2030-01-02  310 requests  2 tunnels',
    ]);
    expect(lines.at(-1)).toMatch(/^ {2}tcp {2}20007 {2}2030-.* {2}open {2}1 connection {2}4.1 kB {2}local$/);
  });

  it('starts with the first day that has usage, and says "No usage yet" if there is none', () => {
    const empty = (date: string) => ({ date, tunnels: 0, requests: 0, bytes: 0 });
    const chart = [empty('2029-12-30'), empty('2029-12-31'), ...USAGE.chart, empty('2030-01-03')];
    const daysOf = (points: typeof chart): string[] =>
      usageLines({ ...USAGE, chart: points }, { width: null, colours: PLAIN }).filter((line) =>
        /^ {2}20|usage/.test(line),
      );
    expect(daysOf(chart).map((line) => line.slice(2, 12))).toEqual(['2030-01-01', '2030-01-02', '2030-01-03']);
    expect(daysOf(chart.slice(0, 2))).toEqual(['No usage yet']);
  });

  it('has two charts on a terminal and stays within its width', () => {
    for (const width of [30, 60, 200]) {
      const lines = usageLines(USAGE, { width, colours: PLAIN });
      expect(lines).toContain('requests per day, last 2 days');
      expect(lines).toContain('tunnels per day, last 2 days');
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(width);
    }
  });

  it('omits an unlimited tunnel limit, and says "No tunnels yet" for an empty list', () => {
    const summary = { ...USAGE.summary, tunnel_limit: null };
    const lines = usageLines({ ...USAGE, summary, tunnels: [] }, { width: null, colours: PLAIN });
    expect([lines[0], lines.at(-1)]).toEqual(['plan free: 1 tunnel open', 'No tunnels yet']);
  });
});

const PLAIN = pc.createColors(false);
const PAYG = BILLING as BillingStatus;
const linesOf = (more: Partial<BillingStatus> = {}, usedCents = PAYG.estimated_mtd_cents): string[] =>
  billingLines({ status: { ...PAYG, ...more }, usedCents }, { width: null, colours: PLAIN });
const rowOf = (name: string, more: Partial<BillingStatus> = {}, usedCents?: number): string =>
  linesOf(more, usedCents)
    .find((line) => line.startsWith(`  ${name}`))
    ?.slice(`  ${name}`.length)
    .trim() ?? '';

it('the billing report shows all fields of a paid plan', () => {
  expect(linesOf()).toEqual([
    'plan payg: pay as you go',
    '  this month (UTC)  $12.40 so far, $3.00 at least',
    '  spend cap         $20.00  ████████████░░░░░░░░ 62 % ($12.40 of usage)',
    '  subscription      active',
    `  period ends       ${momentText('2030-02-01T00:00:00.000Z')}`,
    '  payment method    on file',
  ]);
});

it('the billing report names the card, and marks test mode', () => {
  expect(rowOf('payment method', { payment_method: { brand: 'visa', last4: '4242' } })).toBe('visa •••• 4242');
  expect(linesOf({ test_mode: true })[0]).toBe('plan payg: pay as you go (test mode, no real charges)');
});

it('the billing report of a free plan shows only the payment method and a canceled subscription', () => {
  const free = {
    billing_model: 'free',
    plan_name: 'free',
    subscription_status: null,
    has_payment_method: false,
  } as const;
  expect(linesOf(free)).toEqual(['plan free: free of charge', '  payment method  none']);
  expect(linesOf({ ...free, subscription_status: 'canceled' })).toContain('  subscription    canceled');
});

describe('the spend cap in the billing report', () => {
  it.each([
    [null, 1240, 'none'],
    [0, 0, '$0.00: no usage allowed'],
    [200, 0, '$2.00  ░░░░░░░░░░░░░░░░░░░░ 0 % ($0.00 of usage)'],
    [200, 123, '$2.00  ████████████░░░░░░░░ 61 % ($1.23 of usage)'],
    [200, 200, '$2.00  ████████████████████ 100 %: reached, tunnels are stopped'],
    [100_000, 301, '$1000.00  █░░░░░░░░░░░░░░░░░░░ 0 % ($3.01 of usage)'],
    [2000, 1999, '$20.00  ███████████████████░ 99 % ($19.99 of usage)'],
    [2000, 9000, '$20.00  ████████████████████ 450 %: reached, tunnels are stopped'],
  ])('of %j with %j used is shown as %s', (spend_cap_cents, used, text) => {
    expect(rowOf('spend cap', { spend_cap_cents }, used)).toBe(text);
  });
});

it.each([
  ['past_due', 'past due: the last payment failed (see `tunnel billing portal`)'],
  ['canceled', 'canceled: changes to the free plan when the period ends'],
  [null, 'none'],
] as const)('the subscription state %s is shown as text', (subscription_status, text) => {
  expect(rowOf('subscription', { subscription_status })).toBe(text);
});

it('the billing report stays within the width of the terminal', () => {
  for (const width of [30, 60, 200]) {
    const lines = billingLines(
      { status: { ...PAYG, subscription_status: 'past_due' }, usedCents: 1240 },
      { width, colours: PLAIN },
    );
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(width);
  }
});

it('amounts of money are formatted and parsed back without loss', () => {
  for (const cents of [0, 1, 9, 10, 29, 57, 99, 100, 1999, 123_456, 99_999_999_999_999]) {
    expect(parseCents(dollarsText(cents))).toBe(cents);
  }
});
