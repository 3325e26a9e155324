import { expect, it } from 'vitest';
import { capShare, capTone, coveredBytes, monthText, nextMonthText, utcDateText } from './month.ts';

it('the minimum covers as much as it buys', () => {
  expect(coveredBytes({ monthly_minimum_cents: 300, price_cents_per_gb: 10 })).toBe(30e9);
  expect(coveredBytes({ monthly_minimum_cents: 300, price_cents_per_gb: 0 })).toBe(0);
});

it('a cap is reached with its amount; one of zero at once', () => {
  const shares = [capShare(300, 500), capShare(400, 500), capShare(500, 500), capShare(600, 500), capShare(0, 0)];
  expect(shares).toEqual([0.6, 0.8, 1, 1.2, 1]);
  expect(shares.map(capTone)).toEqual(['accent', 'warn', 'bad', 'bad', 'bad']);
});

it('months are those of UTC', () => {
  const lastMoment = Date.UTC(2030, 11, 31, 23, 59, 59);
  expect([monthText(lastMoment), nextMonthText(lastMoment)]).toEqual(['December 2030', '1 January 2031']);
  expect(utcDateText(Date.UTC(2031, 0, 1))).toBe('1 January 2031');
});
