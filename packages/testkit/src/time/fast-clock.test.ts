import { describe, expect, it } from 'vitest';
import { FastClock } from './fast-clock.ts';

const elapsed = (clock: FastClock, ms: number): Promise<number> =>
  new Promise((resolve) => {
    const from = clock.monotonic();
    clock.setTimeout(() => resolve(clock.monotonic() - from), ms);
  });

describe('FastClock', () => {
  it('passes half a minute within ten real seconds, and never fires a timer early', async () => {
    const clock = new FastClock(300);
    const realStart = performance.now();
    const wallStart = clock.now();
    const passed = await elapsed(clock, 30_000);
    expect(passed).toBeGreaterThanOrEqual(30_000);
    const real = performance.now() - realStart;
    // A suspended machine delays both clocks equally.
    expect(real).toBeGreaterThanOrEqual(99);
    expect(real).toBeLessThan(10_000);
    expect(clock.now() - wallStart).toBeGreaterThanOrEqual(30_000 - 1);
    // Durations with a fraction of a real millisecond, for which timers of Node.js fire early.
    for (const ms of [100, 700, 1000, 1333]) expect(await elapsed(clock, ms)).toBeGreaterThanOrEqual(ms);
  });

  it('starts at the given time, and both of its clocks run at the same speed', async () => {
    const clock = new FastClock(1000, Date.UTC(2030, 0, 1));
    // The wall clock is read between two readings of the monotonic clock, because the machine may pause in between.
    const expectSameTime = (): void => {
      const before = clock.monotonic();
      const wall = clock.now() - Date.UTC(2030, 0, 1);
      expect(wall).toBeGreaterThanOrEqual(before - 1);
      expect(wall).toBeLessThanOrEqual(clock.monotonic());
    };
    expectSameTime();
    await elapsed(clock, 60_000);
    expectSameTime();
  });

  it('runs an interval until canceled, even from inside the interval', async () => {
    const clock = new FastClock(100);
    const seen: number[] = [];
    await new Promise<void>((resolve) => {
      const from = clock.monotonic();
      const interval = clock.setInterval(() => {
        seen.push(clock.monotonic() - from);
        if (seen.length < 3) return;
        interval.cancel();
        clock.setTimeout(resolve, 2000);
      }, 500);
    });
    expect(seen).toHaveLength(3);
    expect(seen.every((at, index) => at >= 500 * (index + 1))).toBe(true);
  });

  it('never runs a canceled timer', async () => {
    const clock = new FastClock(100);
    const seen: string[] = [];
    clock.setTimeout(() => seen.push('timeout'), 100).cancel();
    clock.setInterval(() => seen.push('interval'), 100).cancel();
    await elapsed(clock, 1000);
    expect(seen).toEqual([]);
  });

  it('can pass some time at another speed, which affects waiting timers', async () => {
    const clock = new FastClock(1);
    const seen: string[] = [];
    clock.setTimeout(() => seen.push('within'), 30_000);
    clock.setTimeout(() => seen.push('after'), 500_000);
    const from = clock.monotonic();
    const realFrom = performance.now();
    await clock.pass(60_000, 600);
    expect(clock.monotonic() - from).toBeGreaterThanOrEqual(60_000);
    expect(seen).toEqual(['within']);
    expect(performance.now() - realFrom).toBeLessThan(30_000);
    // The clock is back at its previous speed of one second per real second.
    const then = clock.monotonic();
    const realThen = performance.now();
    await elapsed(clock, 20);
    expect(performance.now() - realThen).toBeGreaterThanOrEqual(19);
    expect(clock.monotonic() - then).toBeLessThan(performance.now() - realThen + 1);
  });

  it('refuses to run slower than the system clock', () => {
    expect(() => new FastClock(0)).toThrow(RangeError);
    expect(() => new FastClock(Number.NaN)).toThrow(RangeError);
  });
});
