import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { billingMonth, monthEnd, monthOf, monthStart } from './billing-month.ts';

const LATE_MS = 50 * 60_000;
const JULY = Date.UTC(2030, 6, 1);
const time = fc.integer({ min: Date.UTC(1970, 0), max: Date.UTC(2200, 0) });

describe('months in UTC', () => {
  it('change at midnight of the first', () => {
    expect(monthOf(JULY - 1)).toBe('2030-06');
    expect(monthOf(JULY)).toBe('2030-07');
    expect(monthStart('2030-07')).toBe(JULY);
    expect(monthEnd('2030-06')).toBe(JULY);
    expect(monthEnd('2030-12')).toBe(Date.UTC(2031, 0, 1));
    expect(monthEnd('2028-02') - monthStart('2028-02')).toBe(29 * 86_400_000);
  });

  it('hold every moment in exactly one', () => {
    fc.assert(
      fc.property(time, (at) => {
        const month = monthOf(at);
        expect(monthStart(month)).toBeLessThanOrEqual(at);
        expect(monthEnd(month)).toBeGreaterThan(at);
        expect(monthOf(monthEnd(month) - 1)).toBe(month);
        expect(monthOf(monthEnd(month))).not.toBe(month);
        expect(monthOf(monthStart(month))).toBe(month);
      }),
    );
  });
});

describe('the month that use is billed in', () => {
  it('is the one that it happened in, until that one is closed', () => {
    expect(billingMonth(JULY - 1, JULY - 1, LATE_MS)).toBe('2030-06');
    expect(billingMonth(JULY - 1, JULY + LATE_MS - 1, LATE_MS)).toBe('2030-06');
    expect(billingMonth(JULY - 1, JULY + LATE_MS, LATE_MS)).toBe('2030-07');
    expect(billingMonth(JULY, JULY + LATE_MS, LATE_MS)).toBe('2030-07');
    expect(billingMonth(Date.UTC(2029, 0), JULY, LATE_MS)).toBe('2030-07');
  });

  it('is that of now for a clock that is ahead', () => {
    expect(billingMonth(JULY, JULY - 1, LATE_MS)).toBe('2030-06');
    expect(billingMonth(253_402_300_799_999, JULY, LATE_MS)).toBe('2030-07');
  });

  it('is always one that is still open', () => {
    fc.assert(
      fc.property(time, time, (at, now) => {
        const month = billingMonth(at, now, LATE_MS);
        expect(now).toBeLessThan(monthEnd(month) + LATE_MS);
        expect(now).toBeGreaterThanOrEqual(monthStart(month));
      }),
    );
  });
});
