import fc from 'fast-check';
import { expect, it } from 'vitest';
import { randomCases } from './random-cases.ts';

it('tries the asked share of the cases, and at least one', () => {
  expect([300, 20, 3, 1].map((all) => randomCases(all, 1 / 3))).toEqual([100, 7, 1, 1]);
  expect(randomCases(20, 25)).toBe(500);
});

it('holds for the properties of fast-check, with a number of cases and without', async () => {
  const tried = { numbered: 0, usual: 0 };
  fc.assert(
    fc.property(fc.nat(), () => void (tried.numbered += 1)),
    { numRuns: 30 },
  );
  await fc.assert(fc.asyncProperty(fc.nat(), async () => void (tried.usual += 1)));
  expect(tried).toEqual({ numbered: randomCases(30), usual: randomCases(100) });
});
