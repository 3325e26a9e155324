import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterConnect, afterFailure, type BackoffState, CALM, decideMailRetry, judgeLiveness } from './retry.ts';

describe('a lost connection', () => {
  const RULES = { minMs: 500, maxMs: 30_000, stableAfterMs: 5000 };
  const ALMOST_ONE = 1 - Number.EPSILON;

  /** Returns the pauses between attempts if every attempt fails at once. */
  const delays = (count: number, random: number): number[] => {
    let state: BackoffState = CALM;
    let now = 0;
    return Array.from({ length: count }, () => {
      const next = afterFailure(state, now, random, RULES);
      state = next.state;
      now += next.delayMs;
      return next.delayMs;
    });
  };

  it('is retried about every second at first, then less often, down to every 30 s', () => {
    expect(delays(7, 0)).toEqual([0, 500, 500, 500, 500, 500, 500]);
    expect(delays(7, ALMOST_ONE)).toEqual([500, 1000, 1000, 1000, 1000, 1125, 1406]);
    expect([delays(100, 0).at(-1), delays(2000, ALMOST_ONE).at(-1)]).toEqual([15_000, 30_000]);
  });

  it('draws the first pause from the full range, and later pauses from its upper half', () => {
    expect(delays(3, 0.5)).toEqual([250, 750, 750]);
  });

  it('counts a slow attempt as time without a connection', () => {
    const { state } = afterFailure(CALM, 0, 0, RULES);
    expect(afterFailure(state, 20_000, ALMOST_ONE, RULES).delayMs).toBe(5000);
  });

  it('forgets earlier failures only after 5 s of a stable connection', () => {
    const tired: BackoffState = { failures: 6, connectedAt: null, lostAt: -79_000, earlierMs: 0 };
    const connected = afterConnect(tired, 1000);
    const flapped = afterFailure(connected, 5999, ALMOST_ONE, RULES);
    expect([flapped.delayMs, flapped.state.failures]).toEqual([20_000, 7]);
    const stable = afterFailure(connected, 6000, ALMOST_ONE, RULES);
    expect([stable.delayMs, stable.state.failures]).toEqual([500, 1]);
  });

  it('finds a restarted server within 1 s, or within a quarter of its downtime', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 600_000 }),
        fc.array(fc.double({ min: 0, max: ALMOST_ONE, noNaN: true }), { minLength: 5, maxLength: 50 }),
        (awayMs, randoms) => {
          let state = CALM;
          let now = 0;
          let tries = 0;
          while (now <= awayMs) {
            const next = afterFailure(state, now, randoms[tries % randoms.length] ?? 0, RULES);
            state = next.state;
            now += Math.max(1, next.delayMs);
            tries += 1;
          }
          expect(now - awayMs).toBeLessThanOrEqual(Math.max(1000, Math.min(30_000, awayMs / 4 + 1)));
          // At most two attempts per second in the first 8 s, and a few more for each doubling of the downtime after that.
          expect(tries).toBeLessThanOrEqual(
            2 + Math.min(awayMs, 8000) / 500 + 8 * Math.log2(Math.max(1, awayMs / 8000)) + awayMs / 15_000,
          );
        },
      ),
    );
  });

  it('pauses within its bounds after random losses, and longer only after time without a stable connection', () => {
    const event = fc.record({
      attemptMs: fc.integer({ min: 0, max: 10_000 }),
      upMs: fc.option(fc.integer({ min: 0, max: 12_000 })),
      random: fc.double({ min: 0, max: ALMOST_ONE, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let state = CALM;
        let now = 0;
        let failures = 0;
        let downMs = 0;
        for (const { attemptMs, upMs, random } of events) {
          now += attemptMs;
          if (failures > 0) downMs += attemptMs;
          if (upMs !== null) {
            state = afterConnect(state, now);
            now += upMs;
            if (upMs >= RULES.stableAfterMs) [failures, downMs] = [0, 0];
          }
          const next = afterFailure(state, now, random, RULES);
          state = next.state;
          const ceilingMs = failures === 0 ? 500 : Math.min(30_000, Math.max(1000, downMs / 4));
          expect(next.delayMs).toBeLessThanOrEqual(Math.ceil(ceilingMs));
          expect(next.delayMs).toBeGreaterThanOrEqual(failures === 0 ? 0 : Math.floor(ceilingMs / 2));
          failures += 1;
          expect(state.failures).toBe(failures);
          now += next.delayMs;
          downMs += next.delayMs;
        }
      }),
    );
  });
});

describe('a mail that could not be sent', () => {
  const HOUR = 3_600_000;
  const rules = { minMs: 5000, maxMs: HOUR, giveUpAfterMs: 24 * HOUR };
  const after = (attempts: number, now: number, random = 0.5) =>
    decideMailRetry({ writtenAt: 0, attempts }, now, random, rules);

  it('waits twice as long after each failure, up to an hour', () => {
    const retries = [1, 2, 3, 10, 11, 500].map((attempts) => after(attempts, 1000));
    expect(retries).toEqual(
      [6000, 11_000, 21_000, 2_561_000, HOUR + 1000, HOUR + 1000].map((at) => ({ kind: 'retry', at })),
    );
  });

  it('is retried at a random offset, so that mails that failed together spread out', () => {
    expect([after(1, 0, 0), after(1, 0, 0.999)]).toEqual([
      { kind: 'retry', at: 3750 },
      { kind: 'retry', at: 6248 },
    ]);
  });

  it('is tried a last time after 24 hours, then dropped', () => {
    expect(after(30, 24 * HOUR - 1)).toEqual({ kind: 'retry', at: 24 * HOUR });
    expect(after(31, 24 * HOUR)).toEqual({ kind: 'give-up' });
  });

  it('is given up after 24 hours and fewer than 50 attempts, at any random values', () => {
    let now = 0;
    let attempts = 0;
    for (;;) {
      attempts += 1;
      const retry = after(attempts, now, (attempts * 0.37) % 1);
      if (retry.kind === 'give-up') break;
      expect(retry.at).toBeGreaterThan(now);
      now = retry.at;
    }
    expect(now).toBe(24 * HOUR);
    expect(attempts).toBeLessThan(50);
  });
});

describe('the keepalive of a peer', () => {
  const RULES = { pingEveryMs: 10_000, deadAfterMs: 25_000 };

  it('sends pings at a fixed pace, even while it receives data', () => {
    expect(judgeLiveness({ lastHeardAt: 9_999, lastPingAt: 0 }, 9_999, RULES)).toBe('alive');
    expect(judgeLiveness({ lastHeardAt: 10_000, lastPingAt: 0 }, 10_000, RULES)).toBe('ping-due');
  });

  it('declares the peer dead 25 s after the last data, not earlier', () => {
    expect(judgeLiveness({ lastHeardAt: 0, lastPingAt: 20_000 }, 24_999, RULES)).toBe('alive');
    expect(judgeLiveness({ lastHeardAt: 0, lastPingAt: 20_000 }, 25_000, RULES)).toBe('dead');
  });
});
