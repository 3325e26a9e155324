import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  billingMonth,
  capState,
  dailyLines,
  dueCents,
  estimateCents,
  freeBytes,
  lastUtcDays,
  monthEnd,
  monthOf,
  monthStart,
  showDollars,
  usageCents,
  utcDay,
} from './rating.rules.ts';

const LATE_MS = 50 * 60_000;
const JULY = Date.UTC(2030, 6, 1);
const time = fc.integer({ min: Date.UTC(1970, 0), max: Date.UTC(2200, 0) });

describe('months in UTC', () => {
  it('change at midnight on the first of the month', () => {
    expect(monthOf(JULY - 1)).toBe('2030-06');
    expect(monthOf(JULY)).toBe('2030-07');
    expect(monthStart('2030-07')).toBe(JULY);
    expect(monthEnd('2030-06')).toBe(JULY);
    expect(monthEnd('2030-12')).toBe(Date.UTC(2031, 0, 1));
    expect(monthEnd('2028-02') - monthStart('2028-02')).toBe(29 * 86_400_000);
  });

  it('contain every moment in exactly one month', () => {
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

describe('the billing month of usage', () => {
  it('is the month of the usage until that month is closed', () => {
    expect(billingMonth(JULY - 1, JULY - 1, LATE_MS)).toBe('2030-06');
    expect(billingMonth(JULY - 1, JULY + LATE_MS - 1, LATE_MS)).toBe('2030-06');
    expect(billingMonth(JULY - 1, JULY + LATE_MS, LATE_MS)).toBe('2030-07');
    expect(billingMonth(JULY, JULY + LATE_MS, LATE_MS)).toBe('2030-07');
    expect(billingMonth(Date.UTC(2029, 0), JULY, LATE_MS)).toBe('2030-07');
  });

  it("is the current month if the edge's clock is ahead", () => {
    expect(billingMonth(JULY, JULY - 1, LATE_MS)).toBe('2030-06');
    expect(billingMonth(253_402_300_799_999, JULY, LATE_MS)).toBe('2030-07');
  });

  it('is always still open', () => {
    fc.assert(
      fc.property(time, time, (at, now) => {
        const month = billingMonth(at, now, LATE_MS);
        expect(now).toBeLessThan(monthEnd(month) + LATE_MS);
        expect(now).toBeGreaterThanOrEqual(monthStart(month));
      }),
    );
  });
});

describe('days in UTC', () => {
  it('change at midnight', () => {
    expect(utcDay(Date.UTC(2030, 1, 28, 23, 59, 59, 999))).toBe('2030-02-28');
    expect(utcDay(Date.UTC(2030, 2, 1))).toBe('2030-03-01');
  });

  it('are counted back from today, oldest first, across months, leap days and clock changes', () => {
    expect(lastUtcDays(Date.UTC(2028, 2, 1, 12), 3)).toEqual(['2028-02-28', '2028-02-29', '2028-03-01']);
    expect(lastUtcDays(Date.UTC(2030, 0, 1), 1)).toEqual(['2030-01-01']);
    const ninety = lastUtcDays(Date.UTC(2030, 4, 1, 0, 0, 1), 90);
    expect(new Set(ninety).size).toBe(90);
    expect([ninety[0], ninety.at(-1)]).toEqual(['2030-02-01', '2030-05-01']);
  });
});

const GB = 1_000_000_000;
/** Price in cents per 10^9 bytes. The minimum below is three dollars a month. */
const PRICE = 10;
const MINIMUM = 300;

const bytes = fc.nat(2 ** 48);
const price = fc.integer({ min: 1, max: 100_000 });
const days = fc
  .uniqueArray(fc.integer({ min: 1, max: 28 }), { maxLength: 28 })
  .chain((numbers) => fc.tuple(...numbers.map((day) => fc.record({ day: fc.constant(dayOf(day)), bytes }))));
const dayOf = (day: number): string => `2030-06-${String(day).padStart(2, '0')}`;
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

describe('usage in cents', () => {
  it('is rounded down once', () => {
    const cases: [bytes: number, cents: number][] = [
      [0, 0],
      [1, 0],
      [GB / 10 - 1, 0],
      [GB / 10, 1],
      [GB - 1, 9],
      [GB, 10],
      [30 * GB - 1, 299],
      [30 * GB, 300],
      [31_230_000_000, 312],
      [Number.MAX_SAFE_INTEGER, 90_071_992],
    ];
    for (const [used, cents] of cases) expect(usageCents(used, PRICE), String(used)).toBe(cents);
  });

  it('is exact beyond floating-point precision', () => {
    expect(usageCents(9_007_199_254_740_991, 999_999_999)).toBe(9_007_199_245_733_791);
  });

  it('is never negative, and grows with bytes and price', () => {
    fc.assert(
      fc.property(bytes, fc.nat(2 ** 40), price, fc.nat(1000), (used, more, cents, dearer) => {
        const before = usageCents(used, cents);
        expect(before).toBeGreaterThanOrEqual(0);
        expect(Number.isSafeInteger(before)).toBe(true);
        expect(usageCents(used + more, cents)).toBeGreaterThanOrEqual(before);
        expect(usageCents(used, cents + dearer)).toBeGreaterThanOrEqual(before);
      }),
    );
  });

  it('of a month depends only on the sum, not on batches or their order', () => {
    const batches = fc.array(fc.nat(2 ** 44), { maxLength: 40 });
    fc.assert(
      fc.property(batches, price, fc.infiniteStream(fc.nat()), (parts, cents, random) => {
        const order = parts.map((part) => ({ part, at: random.next().value as number }));
        const shuffled = order.toSorted((a, b) => a.at - b.at).map(({ part }) => part);
        const inOne = usageCents(sum(parts), cents);
        expect(usageCents(sum(shuffled), cents)).toBe(inOne);
        // Rounding each part separately would lose up to a cent per part.
        expect(sum(parts.map((part) => usageCents(part, cents)))).toBeLessThanOrEqual(inOne);
      }),
    );
  });
});

describe('the amount due', () => {
  it('is the minimum until the usage exceeds it', () => {
    expect([0, 299, 300, 301].map((used) => dueCents(used, MINIMUM))).toEqual([300, 300, 300, 301]);
  });

  it('includes the full minimum once, no matter how late in the month the subscription began', () => {
    // Usage before the start is not metered, and the minimum is not prorated.
    expect(estimateCents({ bytes: 0, priceCentsPerGb: PRICE, minimumCents: MINIMUM })).toBe(300);
    expect(estimateCents({ bytes: 2 * GB, priceCentsPerGb: PRICE, minimumCents: MINIMUM })).toBe(300);
    expect(estimateCents({ bytes: 45 * GB, priceCentsPerGb: PRICE, minimumCents: MINIMUM })).toBe(450);
  });

  it('is zero on a plan without a price', () => {
    expect(estimateCents({ bytes: 45 * GB, priceCentsPerGb: 0, minimumCents: 0 })).toBe(0);
    expect(estimateCents({ bytes: 45 * GB, priceCentsPerGb: 0, minimumCents: MINIMUM })).toBe(0);
  });

  it('is the minimum plus the usage beyond the included bytes', () => {
    expect(freeBytes(MINIMUM, PRICE)).toBe(30 * GB);
    fc.assert(
      fc.property(bytes, fc.integer({ min: 1, max: 1000 }), fc.nat(1000), (used, perGb, multiple) => {
        // If the minimum pays for a whole number of bytes, both calculations agree to the cent.
        const minimum = multiple * perGb;
        const beyond = usageCents(Math.max(0, used - freeBytes(minimum, perGb)), perGb);
        expect(minimum + beyond).toBe(dueCents(usageCents(used, perGb), minimum));
      }),
    );
  });

  it('is at most one cent higher than when computed from the included bytes', () => {
    fc.assert(
      fc.property(bytes, price, fc.nat(100_000), (used, perGb, minimum) => {
        const due = dueCents(usageCents(used, perGb), minimum);
        const other = minimum + usageCents(Math.max(0, used - freeBytes(minimum, perGb)), perGb);
        expect(other).toBeLessThanOrEqual(due);
        expect(other).toBeGreaterThanOrEqual(due - 1);
      }),
    );
    expect(freeBytes(MINIMUM, 0)).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe('daily lines', () => {
  it('show a cent on the day in which the cent is complete', () => {
    const lines = dailyLines(
      [
        { day: '2030-06-02', bytes: 60_000_000 },
        { day: '2030-06-01', bytes: 60_000_000 },
        { day: '2030-06-03', bytes: 79_999_999 },
      ],
      PRICE,
    );
    expect(lines.map(({ day, cents }) => [day, cents])).toEqual([
      ['2030-06-01', 0],
      ['2030-06-02', 1],
      ['2030-06-03', 0],
    ]);
  });

  it('sum to the month, are never negative, and do not depend on their input order', () => {
    fc.assert(
      fc.property(days, price, (given, cents) => {
        const lines = dailyLines(given, cents);
        expect(sum(lines.map((line) => line.cents))).toBe(usageCents(sum(given.map((day) => day.bytes)), cents));
        for (const line of lines) expect(line.cents).toBeGreaterThanOrEqual(0);
        expect(dailyLines(given.toReversed(), cents)).toEqual(lines);
      }),
    );
  });
});

const CENT = 100_000_000;
const stateAt = (cents: number, capCents: number | null, priceCentsPerGb = 10) =>
  capState({ bytes: cents * CENT, priceCentsPerGb, capCents });

describe('a spend cap', () => {
  it('is reached once usage equals or exceeds it', () => {
    expect(stateAt(499, 500)).toEqual({ reached: false, notice: 80 });
    expect(stateAt(500, 500)).toEqual({ reached: true, notice: 100 });
    expect(stateAt(50_000, 500)).toEqual({ reached: true, notice: 100 });
  });

  it('is compared with whole cents of usage and never with the minimum', () => {
    expect(capState({ bytes: 5 * CENT - 1, priceCentsPerGb: 10, capCents: 5 })).toEqual({ reached: false, notice: 80 });
    expect(stateAt(0, 100)).toEqual({ reached: false, notice: null });
  });

  it('triggers notices at 80 % and 100 %', () => {
    expect(stateAt(399, 500).notice).toBeNull();
    expect(stateAt(400, 500).notice).toBe(80);
    expect(stateAt(500, 500).notice).toBe(100);
    expect(stateAt(1, 1).notice).toBe(100);
    expect(stateAt(2, 3).notice).toBeNull();
  });

  it('of 0 is always reached, without a notice', () => {
    expect(stateAt(0, 0)).toEqual({ reached: true, notice: null });
    expect(stateAt(7, 0)).toEqual({ reached: true, notice: null });
  });

  it('is never reached if unset or on a plan without a price', () => {
    expect(stateAt(99_999, null)).toEqual({ reached: false, notice: null });
    expect(stateAt(99_999, 0, 0)).toEqual({ reached: false, notice: null });
  });

  it('reopens if raised above the usage, and never through more usage', () => {
    fc.assert(
      fc.property(fc.nat(100_000), fc.nat(100_000), fc.nat(1000), (cents, cap, more) => {
        expect(stateAt(cents, cap).reached).toBe(cents >= cap);
        expect(stateAt(cents, cents + 1 + more).reached).toBe(false);
        if (stateAt(cents, cap).reached) expect(stateAt(cents + more, cap).reached).toBe(true);
      }),
    );
  });
});

it('amounts in dollars are shown with two decimals', () => {
  expect([0, 5, 50, 500, 501, 123_456, 1_000_000_000].map(showDollars)).toEqual([
    ...['$0.00', '$0.05', '$0.50', '$5.00', '$5.01', '$1234.56', '$10000000.00'],
  ]);
});
