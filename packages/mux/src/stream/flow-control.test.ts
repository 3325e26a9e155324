// Flow control in numbers: window growth with use, the limit of the memory budget, and the return to the fair share.

import { WIRE_LIMITS } from '@tunnel/protocol';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MUX_LIMITS } from '../limits.ts';
import {
  initialWindow,
  MemoryBudget,
  ReceiveWindow,
  RoundTrip,
  STREAM_WINDOW_GROWS_AFTER_BYTES,
  STREAM_WINDOW_SHARED_BYTES,
  STREAM_WINDOW_SHORT_PATH_BYTES,
} from './flow-control.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

describe('the initial window', () => {
  it('is 256 KiB for few streams, smaller for many, and never below the floor', () => {
    const budget = new MemoryBudget(64 * MiB);
    expect(initialWindow(budget, 0)).toBe(256 * KiB);
    expect(initialWindow(budget, 63)).toBe(256 * KiB);
    expect(initialWindow(budget, 511)).toBe(32 * KiB);
    expect(initialWindow(budget, 100_000)).toBe(MUX_LIMITS.STREAM_WINDOW_FLOOR_BYTES);
  });
});

describe('a receive window', () => {
  it('doubles while used up within two round trips, up to the largest size', () => {
    const window = new ReceiveWindow(new MemoryBudget(1024 * MiB), 256 * KiB, 0);
    let now = 0;
    for (let i = 0; i < 20; i++) {
      now += 150;
      const half = window.windowBytes / 2;
      expect(window.take(half)).toBe(true);
      expect(window.consume(half)).toBe(true);
      window.grant({ roundTripMs: 100, shortestMs: 100, liveStreams: 1, isShared: false, nowMs: now });
    }
    expect(window.windowBytes).toBe(WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES);
  });

  it('stays smaller on a short path, where a larger window would only queue bytes', () => {
    const window = new ReceiveWindow(new MemoryBudget(1024 * MiB), 256 * KiB, 0);
    for (let now = 1; now < 100; now++) {
      const half = window.windowBytes / 2;
      window.take(half);
      window.consume(half);
      window.grant({ roundTripMs: 0, shortestMs: 0, liveStreams: 1, isShared: false, nowMs: now });
    }
    expect(window.windowBytes).toBe(STREAM_WINDOW_SHORT_PATH_BYTES);
  });

  it('shrinks while small messages pass, and grows again afterwards', () => {
    const window = new ReceiveWindow(new MemoryBudget(1024 * MiB), 256 * KiB, 0);
    let now = 0;
    const pass = (isShared: boolean, shortestMs = 0): void => {
      for (const until = now + 100; now < until; now++) {
        const half = window.windowBytes / 2;
        expect(window.take(half)).toBe(true);
        window.consume(half);
        window.grant({ roundTripMs: shortestMs, shortestMs, liveStreams: 2, isShared, nowMs: now });
      }
    };
    pass(false);
    pass(true);
    expect(window.windowBytes).toBe(STREAM_WINDOW_SHARED_BYTES);
    pass(false);
    expect(window.windowBytes).toBe(STREAM_WINDOW_SHORT_PATH_BYTES);
    // A path with a round trip of 2 ms needs a full window of bytes in flight.
    pass(true, 2);
    expect(window.windowBytes).toBe(STREAM_WINDOW_SHORT_PATH_BYTES);
  });

  it('grows on a short path only after more bytes than the kernel buffers for a stalled reader', () => {
    const window = new ReceiveWindow(new MemoryBudget(1024 * MiB), 256 * KiB, 0);
    let passed = 0;
    for (let now = 1; window.windowBytes === 256 * KiB; now++) {
      window.take(128 * KiB);
      window.consume(128 * KiB);
      window.grant({ roundTripMs: 0, shortestMs: 0, liveStreams: 1, isShared: false, nowMs: now });
      passed += 128 * KiB;
    }
    expect(passed).toBe(STREAM_WINDOW_GROWS_AFTER_BYTES + 128 * KiB);
  });

  it('does not grow for a new reader because of bytes read by the previous reader', () => {
    const window = new ReceiveWindow(new MemoryBudget(1024 * MiB), 256 * KiB, 0);
    const pass = (nowMs: number): void => {
      window.take(128 * KiB);
      window.consume(128 * KiB);
      window.grant({ roundTripMs: 0, shortestMs: 0, liveStreams: 1, isShared: false, nowMs });
    };
    // Reads so slowly that the window is never used up and keeps its size.
    for (let at = 1; at <= 100; at++) pass(at * 1000);
    window.onNewReader();
    for (let at = 1; at <= 30; at++) pass(100_000 + at);
    expect(window.windowBytes).toBe(256 * KiB);
  });

  it('keeps its size on a slow stream', () => {
    const window = new ReceiveWindow(new MemoryBudget(1024 * MiB), 256 * KiB, 0);
    window.take(200 * KiB);
    window.consume(200 * KiB);
    expect(window.grant({ roundTripMs: 20, shortestMs: 20, liveStreams: 1, isShared: false, nowMs: 1000 })).toBe(
      200 * KiB,
    );
    expect(window.windowBytes).toBe(256 * KiB);
  });

  it('does not grow past the memory budget of the session or of the process', () => {
    const process = new MemoryBudget(300 * KiB);
    const window = new ReceiveWindow(new MemoryBudget(64 * MiB, process), 256 * KiB, 0);
    window.take(128 * KiB);
    window.consume(128 * KiB);
    expect(window.grant({ roundTripMs: 20, shortestMs: 20, liveStreams: 1, isShared: false, nowMs: 1 })).toBe(
      128 * KiB,
    );
    expect(process.committedBytes).toBe(256 * KiB);
  });

  it('shrinks to its fair share while the memory budget is exceeded', () => {
    const budget = new MemoryBudget(1 * MiB);
    const large = new ReceiveWindow(budget, 1 * MiB, 0);
    budget.commit(256 * KiB);
    large.take(512 * KiB);
    large.consume(512 * KiB);
    expect(large.grant({ roundTripMs: 0, shortestMs: 0, liveStreams: 4, isShared: false, nowMs: 1000 })).toBe(0);
    expect(large.windowBytes).toBe(512 * KiB);
    expect(budget.exceeded).toBe(false);
  });

  it('never grants the peer more credit than its size, whatever the order of events', () => {
    const step = fc.record({
      take: fc.integer({ min: 0, max: 600_000 }),
      pass: fc.integer({ min: 0, max: 600_000 }),
      wait: fc.integer({ min: 0, max: 300 }),
      isShared: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60, size: 'max' }),
        fc.integer({ min: 1, max: 2000 }),
        (steps, liveStreams) => {
          const budget = new MemoryBudget(2 * MiB);
          const window = new ReceiveWindow(budget, 256 * KiB, 0);
          let credit = 256 * KiB;
          let queued = 0;
          let unspoken = 0;
          let now = 0;
          for (const { take, pass, wait, isShared } of steps) {
            now += wait;
            const fits = take <= credit;
            expect(window.take(take)).toBe(fits);
            if (fits) {
              credit -= take;
              queued += take;
            }
            const passed = Math.min(pass, queued);
            queued -= passed;
            unspoken += passed;
            if (window.consume(passed)) {
              credit += window.grant({
                roundTripMs: 10,
                shortestMs: isShared ? 0 : 10,
                liveStreams,
                isShared,
                nowMs: now,
              });
              unspoken = 0;
            }
            expect(credit + queued + unspoken).toBe(window.windowBytes);
            expect(budget.committedBytes).toBe(window.windowBytes);
          }
          window.close();
          expect(budget.committedBytes).toBe(0);
        },
      ),
    );
  });
});

describe('the measured round trip of a path', () => {
  it('is the shortest of several, because a busy machine can delay a single response', () => {
    const path = new RoundTrip();
    const said = [41, 35, 60, 2, 90, 33, 21].map((elapsedMs) => path.measured(elapsedMs));
    expect([said.includes(true), path.shortestMs]).toEqual([false, 0]);
    expect([path.measured(48), path.shortestMs, path.latestMs]).toEqual([true, 2, 48]);
    expect([path.measured(1), path.shortestMs]).toEqual([true, 1]);
  });
});
