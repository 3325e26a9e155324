import { describe, expect, it } from 'vitest';
import { FakeClock } from './fake-clock.ts';

describe('FakeClock', () => {
  it('runs timers in the order of their times, and equal times in the order of creation', async () => {
    const clock = new FakeClock(0);
    const seen: string[] = [];
    clock.setTimeout(() => seen.push('c'), 30);
    clock.setTimeout(() => seen.push('a'), 10);
    clock.setTimeout(() => seen.push('b1'), 20);
    clock.setTimeout(() => seen.push('b2'), 20);
    await clock.advance(29);
    expect(seen).toEqual(['a', 'b1', 'b2']);
    await clock.advance(1);
    expect(seen).toEqual(['a', 'b1', 'b2', 'c']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('shows a timer its due time on both clocks', async () => {
    const clock = new FakeClock(1_000_000);
    const seen: number[][] = [];
    clock.setInterval(() => seen.push([clock.now(), clock.monotonic()]), 100);
    await clock.advance(250);
    expect(seen).toEqual([
      [1_000_100, 100],
      [1_000_200, 200],
    ]);
    expect([clock.now(), clock.monotonic()]).toEqual([1_000_250, 250]);
  });

  it('lets a long chain of promises settle before the next timer', async () => {
    const clock = new FakeClock();
    const seen: string[] = [];
    const chain = async (): Promise<void> => {
      for (let i = 0; i < 50; i++) await Promise.resolve();
      seen.push('chain');
      clock.setTimeout(() => seen.push('from the chain'), 5);
    };
    clock.setTimeout(() => void chain(), 10);
    clock.setTimeout(() => seen.push('next'), 11);
    await clock.advance(20);
    expect(seen).toEqual(['chain', 'next', 'from the chain']);
  });

  it('never runs a canceled timer, even if a timer of the same time cancels it', async () => {
    const clock = new FakeClock();
    const seen: string[] = [];
    clock.setTimeout(() => second.cancel(), 10);
    const second = clock.setTimeout(() => seen.push('second'), 10);
    const interval = clock.setInterval(() => {
      seen.push('tick');
      interval.cancel();
    }, 5);
    await clock.advance(100);
    expect(seen).toEqual(['tick']);
  });

  it('keeps timers and monotonic time when the wall clock is set', async () => {
    const clock = new FakeClock(5000);
    let ran = false;
    clock.setTimeout(() => {
      ran = true;
    }, 10);
    clock.setWallClock(0);
    await clock.advance(10);
    expect([ran, clock.now(), clock.monotonic()]).toEqual([true, 10, 10]);
  });
});
