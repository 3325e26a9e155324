import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenBucket, TokenBuckets, type TokenRate } from './token-buckets.ts';

const anyRate = fc.record({ perSecond: fc.integer({ min: 1, max: 50 }), burst: fc.integer({ min: 1, max: 12 }) });
const anyPause = fc.constantFrom(0, 0, 0, 1, 7, 30, 90, 400, 3000);

/** Whether any interval has more events than burst and rate allow. */
const isOver = (times: readonly number[], { perSecond, burst }: TokenRate): boolean =>
  times.some((from, first) =>
    times.slice(first).some((to, more) => more + 1 > burst + ((to - from) * perSecond) / 1000 + 1e-9),
  );

describe('a single token bucket', () => {
  it('gives a burst at once, then its rate per second', () => {
    const bucket = new TokenBucket({ perSecond: 10, burst: 20 });
    const taken = (now: number): number => {
      for (let count = 0; ; count += 1) if (!bucket.take(now)) return count;
    };
    expect([taken(0), taken(99), taken(100), taken(1100), taken(60_000)]).toEqual([20, 0, 1, 10, 20]);
  });

  it('admits an expensive operation at once, and is in debt for it afterwards', () => {
    const bucket = new TokenBucket({ perSecond: 100, burst: 10 });
    bucket.charge(10, 0);
    expect([bucket.waitMs(0), bucket.waitMs(9), bucket.waitMs(10)]).toEqual([10, 1, 0]);
    bucket.charge(5, 10);
    expect([bucket.waitMs(10), bucket.take(59), bucket.take(60), bucket.take(60)]).toEqual([50, false, true, false]);
  });

  it('counts thirds of a second exactly: the whole burst, and no token more', () => {
    const bucket = new TokenBucket({ perSecond: 3, burst: 1000 });
    const allowed = Array.from({ length: 1100 }, () => bucket.take(12_345)).filter(Boolean);
    expect(allowed).toHaveLength(1000);
    const waitMs = bucket.waitMs(12_345);
    expect([
      Math.ceil(waitMs),
      bucket.take(12_345 + Math.floor(waitMs)),
      bucket.take(12_345 + Math.ceil(waitMs)),
    ]).toEqual([334, false, true]);
  });

  it('gives the whole burst at any fraction of a millisecond', () => {
    const burst = fc.integer({ min: 1, max: 4 });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        burst,
        fc.double({ min: 0, max: 1e9, noNaN: true }),
        (perSecond, secs, now) => {
          const bucket = new TokenBucket({ perSecond, burst: secs * perSecond });
          return Array.from({ length: secs * perSecond }, () => bucket.take(now)).every(Boolean) && !bucket.take(now);
        },
      ),
      { examples: [[80, 2, 5.94636678972578]] },
    );
  });

  it('never gives more than burst and rate allow in any interval, and returns the wait for one token', () => {
    fc.assert(
      fc.property(anyRate, fc.array(anyPause, { maxLength: 100 }), (rate, pauses) => {
        const bucket = new TokenBucket(rate);
        const times: number[] = [];
        let now = 0;
        for (const pause of pauses) {
          now += pause;
          const waitMs = bucket.waitMs(now);
          if (waitMs > 1000 / rate.perSecond || bucket.take(now) !== (waitMs === 0)) return false;
          if (waitMs === 0) times.push(now);
        }
        return !isOver(times, rate);
      }),
    );
  });
});

describe('token buckets by key', () => {
  const RATE = { perSecond: 10, burst: 20, keys: 1000 };

  it('give each key its burst and rate, independent of other keys', () => {
    const buckets = new TokenBuckets(RATE);
    let taken = 0;
    for (let now = 0; now <= 60_000; now += 10) {
      if (buckets.take('one', now) === 0) taken += 1;
      buckets.take(`other ${now}`, now);
    }
    expect(taken).toBe(20 + 600);
  });

  it('return the wait of a key, and give it a token after that wait', () => {
    const buckets = new TokenBuckets(RATE);
    for (let count = 0; count < 20; count += 1) expect(buckets.take('a', 0)).toBe(0);
    expect([buckets.take('a', 0), buckets.waitMs('a', 40), buckets.waitMs('b', 40)]).toEqual([100, 60, 0]);
    expect([buckets.take('a', 100), buckets.take('a', 100)]).toEqual([0, 100]);
  });

  it('remember a key that owes more than its burst until the debt is repaid', () => {
    const buckets = new TokenBuckets(RATE);
    buckets.charge('a', 100, 0);
    for (let now = 0; now < 8100; now += 90) buckets.take(`other ${now}`, now);
    expect(buckets.waitMs('a', 8000)).toBe(100);
    expect(buckets.take('a', 8100)).toBe(0);
  });

  it('remember a bounded number of keys, always including the most recent', () => {
    const buckets = new TokenBuckets({ perSecond: 1, burst: 1, keys: 100 });
    let isBounded = true;
    let areLastKnown = true;
    for (let key = 0; key < 2000; key += 1) {
      buckets.take(`${key}`, 0);
      isBounded &&= buckets.size <= 200;
      areLastKnown &&= key < 99 || buckets.waitMs(`${key - 99}`, 0) === 1000;
    }
    expect([isBounded, areLastKnown]).toEqual([true, true]);
  });

  it('never forget a key that keeps asking, however many other keys arrive in between', () => {
    const buckets = new TokenBuckets({ perSecond: 1, burst: 2, keys: 100 });
    let taken = 0;
    for (let key = 0; key < 10_000; key += 1) {
      if (key % 50 === 0 && buckets.take('guesser', 0) === 0) taken += 1;
      buckets.take(`${key}`, 0);
    }
    expect(taken).toBe(2);
  });

  it('forget keys that were idle for long', () => {
    const buckets = new TokenBuckets({ perSecond: 1, burst: 2, keys: 1000 });
    for (let key = 0; key < 100; key += 1) buckets.take(`${key}`, 0);
    for (const now of [3000, 6000, 9000]) buckets.take('late', now);
    expect(buckets.size).toBe(1);
  });

  it('behave like one permanent bucket per key while there is room', () => {
    const anyStep = fc.record({
      pause: anyPause,
      key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      weight: fc.constantFrom(0, 0, 0, 1, 4, 30),
    });
    fc.assert(
      fc.property(anyRate, fc.array(anyStep, { maxLength: 150 }), (rate, steps) => {
        const buckets = new TokenBuckets({ ...rate, keys: 5 });
        const model = new Map<string, TokenBucket>();
        let now = 0;
        return steps.every(({ pause, key, weight }) => {
          now += pause;
          const own = model.get(key) ?? new TokenBucket(rate);
          model.set(key, own);
          const waitMs = own.waitMs(now);
          let isSame = buckets.waitMs(key, now) === waitMs;
          if (weight === 0) {
            isSame &&= buckets.take(key, now) === waitMs;
            own.take(now);
          } else if (waitMs === 0) {
            buckets.charge(key, weight, now);
            own.charge(weight, now);
          }
          return isSame && buckets.size <= 10;
        });
      }),
      { numRuns: 300 },
    );
  });
});
