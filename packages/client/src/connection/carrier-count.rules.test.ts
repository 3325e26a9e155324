// The number of carriers, also for random visits.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CARRIER_SURPLUS_MS, CARRIERS_AT_REST, CarrierCount } from './carrier-count.rules.ts';

it('a quiet session wants the carriers at rest, and no more than the edge asks for', () => {
  expect(new CarrierCount(4, 0).wanted).toBe(CARRIERS_AT_REST);
  expect(new CarrierCount(1, 0).wanted).toBe(1);
  expect(new CarrierCount(1, 0).update(100, 0)).toBe(1);
});

it('every stream adds a carrier at once, up to the number of the edge', () => {
  const count = new CarrierCount(4, 0);
  expect([0, 1, 2, 3, 4, 50_000].map((streams) => count.update(streams, 0))).toEqual([2, 2, 3, 4, 4, 4]);
});

it('superfluous carriers close after a minute without use, down to the number needed meanwhile', () => {
  const count = new CarrierCount(4, 0);
  expect(count.update(10, 0)).toBe(4);
  expect(count.update(0, 1)).toBe(4);
  expect(count.update(2, 2)).toBe(4);
  expect(count.update(0, CARRIER_SURPLUS_MS - 1)).toBe(4);
  expect(count.update(0, CARRIER_SURPLUS_MS)).toBe(3);
  expect(count.update(0, 2 * CARRIER_SURPLUS_MS - 1)).toBe(3);
  expect(count.update(0, 2 * CARRIER_SURPLUS_MS)).toBe(2);
});

const visits = fc.array(fc.record({ streams: fc.nat({ max: 8 }), afterMs: fc.nat({ max: CARRIER_SURPLUS_MS }) }));

it('for random visits the number is always sufficient, and never shrinks below the use of the last minute', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 16 }), visits, (most, moves) => {
      const count = new CarrierCount(most, 0);
      const seen: { readonly at: number; readonly streams: number }[] = [];
      let now = 0;
      let before = count.wanted;
      for (const { streams, afterMs } of moves) {
        now += afterMs;
        seen.push({ at: now, streams });
        const wanted = count.update(streams, now);
        expect(wanted).toBeGreaterThanOrEqual(Math.min(most, Math.max(CARRIERS_AT_REST, streams + 1)));
        expect(wanted).toBeLessThanOrEqual(Math.max(most, 1));
        if (wanted < before) {
          const recent = seen.filter(({ at }) => now - at < CARRIER_SURPLUS_MS).map((visit) => visit.streams);
          expect(wanted).toBeGreaterThanOrEqual(Math.min(most, Math.max(...recent) + 1));
        }
        before = wanted;
      }
      for (let calm = 0; calm < most + 1; calm += 1) count.update(0, (now += CARRIER_SURPLUS_MS));
      expect(count.wanted).toBe(Math.min(most, CARRIERS_AT_REST));
    }),
  );
});
