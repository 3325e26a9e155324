import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Price } from '../state/model.ts';
import { centsFor, monthEndLines } from './prices.ts';
import { nextMonthStart } from './subscriptions.ts';

const GB = 10 ** 9;
const BYTES = {
  tiers: [
    { up_to: 30 * GB, unit_amount_decimal: '0', flat_amount_decimal: null },
    { up_to: null, unit_amount_decimal: '0.00000001', flat_amount_decimal: null },
  ],
  unit_amount_decimal: null,
};
const price = (usage_type: 'licensed' | 'metered', rate: Pick<Price, 'tiers' | 'unit_amount_decimal'>): Price =>
  ({ recurring: { usage_type }, metadata: { product_name: usage_type }, ...rate }) as Price;
const PRICES = [price('licensed', { tiers: null, unit_amount_decimal: '300' }), price('metered', BYTES)];

describe('the price of a month', () => {
  it.each([
    [0, 300],
    [29_999_999_999, 300],
    [30_000_000_000, 300],
    [30_099_999_999, 300],
    [30_100_000_000, 301],
    [31_230_000_000, 312],
    [31_239_999_999, 312],
    [1_000_000_000_000, 10_000],
  ])('with %i bytes is %i cents', (bytes, cents) => {
    const lines = monthEndLines({ prices: PRICES, bytes, goesOn: true, waiting: [] });
    expect(lines.reduce((sum, line) => sum + line.cents, 0)).toBe(cents);
  });

  it('is the larger of minimum and usage, to the cent', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (bytes) => {
        const lines = monthEndLines({ prices: PRICES, bytes, goesOn: true, waiting: [] });
        const usage = Number(BigInt(bytes) / 10n ** 8n);
        expect(lines.reduce((sum, line) => sum + line.cents, 0)).toBe(Math.max(300, usage));
      }),
    );
  });

  it('has no fixed part when the subscription ends, but includes waiting items', () => {
    const waiting = [{ amount: 300, description: 'the last minimum' }];
    const lines = monthEndLines({ prices: PRICES, bytes: 31 * GB, goesOn: false, waiting });
    expect(lines.map(({ kind, cents }) => [kind, cents])).toEqual([
      ['metered', 10],
      ['item', 300],
    ]);
  });

  it('is calculated per unit without tiers', () => {
    expect(centsFor({ tiers: null, unit_amount_decimal: '2.5' }, 3)).toBe(7);
    expect(centsFor({ tiers: null, unit_amount_decimal: null }, 3)).toBe(0);
  });
});

describe('the start of the next month', () => {
  it.each([
    ['2026-11-15T09:00:00Z', '2026-12-01T00:00:00Z'],
    ['2026-12-31T23:59:59Z', '2027-01-01T00:00:00Z'],
    ['2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z'],
    ['2028-02-29T12:00:00Z', '2028-03-01T00:00:00Z'],
  ])('after %s is %s', (at, next) => {
    expect(nextMonthStart(Date.parse(at) / 1000)).toBe(Date.parse(next) / 1000);
  });
});
