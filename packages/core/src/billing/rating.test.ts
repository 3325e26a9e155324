import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dailyLines, dueCents, estimateCents, freeBytes, usageCents } from './rating.ts';

const GB = 1_000_000_000;
/** Ten cents for 10^9 bytes, three dollars a month. */
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
  it('is rounded down, once', () => {
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

  it('is exact where numbers are not', () => {
    expect(usageCents(9_007_199_254_740_991, 999_999_999)).toBe(9_007_199_245_733_791);
  });

  it('is never negative, and rises with the bytes and with the price', () => {
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

  it('of a month depends on the sum alone, not on the batches nor on their order', () => {
    const batches = fc.array(fc.nat(2 ** 44), { maxLength: 40 });
    fc.assert(
      fc.property(batches, price, fc.infiniteStream(fc.nat()), (parts, cents, random) => {
        const order = parts.map((part) => ({ part, at: random.next().value as number }));
        const shuffled = order.toSorted((a, b) => a.at - b.at).map(({ part }) => part);
        const inOne = usageCents(sum(parts), cents);
        expect(usageCents(sum(shuffled), cents)).toBe(inOne);
        // Rounding each part would lose up to a cent for each.
        expect(sum(parts.map((part) => usageCents(part, cents)))).toBeLessThanOrEqual(inOne);
      }),
    );
  });
});

describe('what is due', () => {
  it('is the minimum until the usage is more', () => {
    expect([0, 299, 300, 301].map((used) => dueCents(used, MINIMUM))).toEqual([300, 300, 300, 301]);
  });

  it('is the minimum once and whole, however late in the month the subscription began', () => {
    // Nothing that was used before the start is metered, and no part of the minimum is taken off.
    expect(estimateCents({ bytes: 0, priceCentsPerGb: PRICE, minimumCents: MINIMUM })).toBe(300);
    expect(estimateCents({ bytes: 2 * GB, priceCentsPerGb: PRICE, minimumCents: MINIMUM })).toBe(300);
    expect(estimateCents({ bytes: 45 * GB, priceCentsPerGb: PRICE, minimumCents: MINIMUM })).toBe(450);
  });

  it('is nothing on a plan without a price', () => {
    expect(estimateCents({ bytes: 45 * GB, priceCentsPerGb: 0, minimumCents: 0 })).toBe(0);
    expect(estimateCents({ bytes: 45 * GB, priceCentsPerGb: 0, minimumCents: MINIMUM })).toBe(0);
  });

  it('is the minimum plus what goes beyond the bytes that it pays for', () => {
    expect(freeBytes(MINIMUM, PRICE)).toBe(30 * GB);
    fc.assert(
      fc.property(bytes, fc.integer({ min: 1, max: 1000 }), fc.nat(1000), (used, perGb, multiple) => {
        // Where the minimum is a whole number of bytes, both ways give the same to the cent.
        const minimum = multiple * perGb;
        const beyond = usageCents(Math.max(0, used - freeBytes(minimum, perGb)), perGb);
        expect(minimum + beyond).toBe(dueCents(usageCents(used, perGb), minimum));
      }),
    );
  });

  it('is never more by way of the bytes that the minimum pays for', () => {
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
  it('show a cent on the day that completed it', () => {
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

  it('sum to the month, are never negative, and do not depend on the order that they are given in', () => {
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
