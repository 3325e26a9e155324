import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { randomCases } from './random-cases.ts';

const thrownBy = (run: () => void): Error => {
  try {
    run();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('nothing was thrown');
};

it('randomCases returns the requested share of the cases, and at least one', () => {
  expect([300, 20, 3, 1].map((all) => randomCases(all, 1 / 3))).toEqual([100, 7, 1, 1]);
  expect(randomCases(20, 25)).toBe(500);
});

it('randomCases sets the number of runs for fast-check properties with and without numRuns', async () => {
  const tried = { numbered: 0, usual: 0 };
  fc.assert(
    fc.property(fc.nat(), () => void (tried.numbered += 1)),
    { numRuns: 30 },
  );
  await fc.assert(fc.asyncProperty(fc.nat(), async () => void (tried.usual += 1)));
  expect(tried).toEqual({ numbered: randomCases(30), usual: randomCases(100) });
});

describe('a failing property', () => {
  const steps = fc.array(fc.integer({ min: 1_000_000, max: 2_000_000 }), {
    minLength: 700,
    maxLength: 900,
    size: 'max',
  });

  afterEach(() => void vi.restoreAllMocks());

  it('stops shrinking after seconds, and prints the seed and the beginning of the counterexample', () => {
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    let cases = 0;
    const slow = fc.property(steps, ([first = 0]) => {
      cases += 1;
      nowMs += 25;
      if (first >= 0) throw new Error('it is so');
    });
    const error = thrownBy(() => fc.assert(slow, { seed: 42 }));
    expect(cases).toBe(401);
    expect(error.message).toMatch(/^Property failed after 1 tests\n\{ seed: 42, path: "0", endOnFailure: true \}\n/);
    expect(error.message).toMatch(
      /\nCounterexample: \[\[[\d,]{3000,4000}… \(\d+ characters in all\)\nShrunk \d+ time\(s\)\n/,
    );
    expect(error.message.length).toBeLessThan(4500);
    expect(error.cause).toEqual(new Error('it is so'));
  });

  it('stops shrinking after seconds even if asynchronous', async () => {
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    let cases = 0;
    const slow = fc.asyncProperty(steps, async () => {
      cases += 1;
      nowMs += 1000;
      return false;
    });
    await expect(fc.assert(slow, { seed: 42 })).rejects.toThrow(/seed: 42[^]+… \(\d+ characters in all\)/);
    expect(cases).toBe(11);
  });

  it('prints the smallest counterexample in full when shrinking ends in time', () => {
    const small = fc.property(fc.nat({ max: 100_000 }), (n) => n < 1000);
    const { message } = thrownBy(() => fc.assert(small, { seed: 42, numRuns: 1000 }));
    expect(message).toContain('\nCounterexample: [1000]\n');
  });
});
