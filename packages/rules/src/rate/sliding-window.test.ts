import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SlidingWindow, SlidingWindows } from './sliding-window.ts';

const anySteps = fc.array(
  fc.record({
    pause: fc.constantFrom(0, 0, 1, 3, 9, 30, 120),
    key: fc.constantFrom('a', 'b', 'c', 'd'),
    isForgiven: fc.constantFrom(false, false, false, true),
  }),
  { maxLength: 150 },
);

describe('a sliding window in which each event expires separately', () => {
  it('never holds more than its limit in any interval of its length', () => {
    const windows = new SlidingWindows({ perWindow: 3, windowMs: 1000, keys: 10 });
    const take = (key: string, now: number): boolean => windows.take(key, now) === 0;
    expect([0, 800, 900, 950, 999].map((now) => take('a', now))).toEqual([true, true, true, false, false]);
    // At 1000 ms the first event has expired, and the others have not. A window that restarts would admit three events.
    expect([1000, 1001, 1799, 1800].map((now) => take('a', now))).toEqual([true, false, false, true]);
    expect(take('b', 1001)).toBe(true);
  });

  it('returns the wait until there is room for a number of events', () => {
    const window = new SlidingWindow({ perWindow: 3, windowMs: 1000 });
    for (const now of [0, 100, 200]) expect(window.take(now)).toBe(0);
    expect([1, 2, 3, 4].map((count) => window.retryAfterMs(200, count))).toEqual([800, 900, 1000, Infinity]);
    expect([window.hasRoom(999), window.hasRoom(1000), window.hasRoom(1000, 2), window.hasRoom(1100, 2)]).toEqual([
      ...[false, true, false, true],
    ]);
  });

  it('keeps only events in the window, and at most its limit of keys', () => {
    const windows = new SlidingWindows({ perWindow: 1, windowMs: 1000, keys: 3 });
    for (const key of ['a', 'b', 'c', 'd']) windows.take(key, 0);
    expect([windows.size, windows.hasRoom('a', 1), windows.hasRoom('d', 1)]).toEqual([3, true, false]);
    windows.take('e', 1000);
    expect(windows.size).toBe(1);
  });

  it('agrees with a plain list of times after random steps', () => {
    fc.assert(
      fc.property(anySteps, (steps) => {
        const windows = new SlidingWindows({ perWindow: 5, windowMs: 100, keys: 50 });
        const model = new Map<string, number[]>();
        let now = 0;
        return steps.every(({ pause, key, isForgiven }) => {
          now += pause;
          const times = (model.get(key) ?? []).filter((at) => now - at < 100);
          model.set(key, times);
          const waitMs = windows.retryAfterMs(key, now);
          if (waitMs !== (times.length < 5 ? 0 : (times[0] as number) + 100 - now)) return false;
          if (isForgiven) return windows.forgive(key) === (times.pop() !== undefined);
          if (waitMs > 0) return !windows.hasRoom(key, now);
          windows.record(key, now);
          times.push(now);
          return true;
        });
      }),
    );
  });
});

describe('a fixed window that starts with its first event', () => {
  const RULES = { perWindow: 3, windowMs: 60_000, togetherMs: 60_000, keys: 4 };

  it('refuses a key after its failures of the minute, and returns the wait', () => {
    const windows = new SlidingWindows(RULES);
    for (const now of [0, 1000, 2000]) {
      expect(windows.retryAfterMs('a', now)).toBe(0);
      windows.record('a', now);
    }
    expect([windows.retryAfterMs('a', 3000), windows.retryAfterMs('b', 3000)]).toEqual([57_000, 0]);
    expect([windows.hasRoom('a', 60_000, 3), windows.size]).toEqual([true, 0]);
  });

  it('starts a new minute with the first failure after the old one', () => {
    const windows = new SlidingWindows(RULES);
    for (const now of [0, 59_000, 60_000, 60_001]) windows.record('a', now);
    expect(windows.hasRoom('a', 60_002)).toBe(true);
  });

  it('subtracts a forgiven failure, and forgets a key without failures', () => {
    const windows = new SlidingWindows(RULES);
    expect(windows.forgive('a')).toBe(false);
    for (let n = 0; n < 3; n += 1) windows.record('a', 0);
    expect(windows.hasRoom('a', 1)).toBe(false);
    expect(windows.forgive('a')).toBe(true);
    expect([windows.hasRoom('a', 1), windows.size]).toEqual([true, 1]);
    for (let n = 0; n < 2; n += 1) windows.forgive('a');
    expect([windows.size, windows.forgive('a')]).toEqual([0, false]);
  });

  it('makes a key wait no longer than the window, even if more than the limit was recorded', () => {
    const windows = new SlidingWindows(RULES);
    for (let n = 0; n < 10; n += 1) windows.record('a', n);
    expect([windows.retryAfterMs('a', 10), windows.hasRoom('a', 60_000)]).toEqual([59_990, true]);
  });

  it('never keeps more than its limit of keys, and drops the key with the oldest window', () => {
    const windows = new SlidingWindows(RULES);
    for (let n = 0; n < 3; n += 1) windows.record('first', 0);
    fc.assert(
      fc.property(fc.array(fc.string(), { maxLength: 50 }), (keys) => {
        for (const key of keys) windows.record(key, 1);
        expect(windows.size).toBeLessThanOrEqual(RULES.keys);
      }),
    );
    expect(windows.hasRoom('first', 2)).toBe(true);
  });

  it('keeps all other keys when many keys are recorded and forgiven', () => {
    const windows = new SlidingWindows(RULES);
    for (let n = 0; n < 3; n += 1) windows.record('guesser', 0);
    for (let n = 0; n < 100; n += 1) {
      windows.record(`honest ${n}`, 1);
      windows.forgive(`honest ${n}`);
    }
    expect(windows.hasRoom('guesser', 2)).toBe(false);
  });

  it('agrees with a plain count per window after random steps', () => {
    fc.assert(
      fc.property(anySteps, (steps) => {
        const windows = new SlidingWindows({ ...RULES, windowMs: 100, togetherMs: 100 });
        const model = new Map<string, { startedAt: number; count: number }>();
        let now = 0;
        return steps.every(({ pause, key, isForgiven }) => {
          now += pause;
          const known = model.get(key);
          const own = known !== undefined && now - known.startedAt < 100 ? known : { startedAt: now, count: 0 };
          if (windows.retryAfterMs(key, now) !== (own.count < 3 ? 0 : own.startedAt + 100 - now)) return false;
          if (isForgiven && windows.forgive(key) !== own.count > 0) return false;
          if (!isForgiven) windows.record(key, now);
          own.count = Math.max(0, own.count + (isForgiven ? -1 : 1));
          if (own.count === 0) model.delete(key);
          else model.set(key, own);
          return windows.size <= RULES.keys;
        });
      }),
    );
  });
});

describe('a window of bytes', () => {
  const RULES = { perWindow: 100, windowMs: 61_000, togetherMs: 1000, keys: 3 };

  it('limits each key to its bytes, returns the wait, and does not affect other keys', () => {
    const windows = new SlidingWindows(RULES);
    expect([windows.take('a', 0, 60), windows.take('a', 10_000, 40), windows.take('b', 10_000, 100)]).toEqual([
      0, 0, 0,
    ]);
    expect(windows.take('a', 10_000, 1)).toBe(51_000);
    expect(windows.take('a', 10_000, 61)).toBe(61_000);
    expect([windows.take('a', 60_999, 1), windows.take('a', 61_000, 60), windows.take('a', 61_000, 1)]).toEqual([
      ...[1, 0, 10_000],
    ]);
  });

  it('never admits more bytes at once than the window holds, and does not count the attempt', () => {
    const windows = new SlidingWindows(RULES);
    expect([windows.take('a', 0, 101), windows.take('a', 0, 100), windows.take('a', 0, 101)]).toEqual([
      ...[Number.POSITIVE_INFINITY, 0, Number.POSITIVE_INFINITY],
    ]);
  });

  it('forgets the key that was idle the longest when there are too many', () => {
    const windows = new SlidingWindows(RULES);
    for (const [at, key] of ['a', 'b', 'c', 'a', 'd'].entries()) windows.take(key, at * 1000, 50);
    expect([windows.size, windows.take('a', 4000, 1), windows.take('b', 4000, 100)]).toEqual([3, 57_000, 0]);
  });

  it('never holds more than its bytes in any minute, in any order of pieces', () => {
    const pieces = fc.array(
      fc.record({ pause: fc.integer({ min: 0, max: 3000 }), bytes: fc.integer({ min: 0, max: 12 }) }),
      {
        maxLength: 200,
        size: 'max',
      },
    );
    fc.assert(
      fc.property(pieces, (steps) => {
        const window = new SlidingWindow(RULES);
        const taken: { readonly at: number; readonly bytes: number }[] = [];
        const held = (now: number, forMs: number): number =>
          taken.filter(({ at }) => now - at < forMs).reduce((sum, { bytes }) => sum + bytes, 0);
        let now = 0;
        return steps.every(({ pause, bytes }) => {
          now += pause;
          const waitMs = window.take(now, bytes);
          // A refusal means that the last 61 s were full: events of the same second are kept together, so that an event counts up to 1 s
          // longer than a minute.
          if (waitMs > 0) return held(now, 61_000) + bytes > 100;
          taken.push({ at: now, bytes });
          return held(now, 60_000) <= 100;
        });
      }),
    );
  });
});

it('new keys cost no more in a full table than in a small one', () => {
  const cpuMs = (keys: number): number => {
    const windows = new SlidingWindows({ perWindow: 10, windowMs: 60_000, keys });
    for (let n = 0; n < keys; n += 1) windows.take(`held ${n}`, 0);
    const before = process.cpuUsage();
    for (let n = 0; n < 100_000; n += 1) windows.take(`new ${n}`, 1);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  cpuMs(16);
  // 100,000 linear searches through a table of 50,000 keys would take over four seconds.
  expect(cpuMs(50_000)).toBeLessThan(1500);
});
