import { describe, expect, it } from 'vitest';
import { afterConnect, afterFailure, type BackoffState, CALM, decideMailRetry, judgeLiveness } from './retry.ts';

describe('a connection that is tried again', () => {
  const RULES = { minMs: 500, maxMs: 30_000, stableAfterMs: 5000 };
  const ALMOST_ONE = 1 - Number.EPSILON;

  const delays = (count: number, random: number): number[] => {
    let state: BackoffState = CALM;
    return Array.from({ length: count }, () => {
      const next = afterFailure(state, 0, random, RULES);
      state = next.state;
      return next.delayMs;
    });
  };

  it('doubles from at most half a second to half a minute and stays there', () => {
    expect(delays(8, 0)).toEqual([0, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]);
    expect(delays(8, ALMOST_ONE)).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    expect(delays(2000, ALMOST_ONE).at(-1)).toBe(30_000);
  });

  it('spreads the first delay over all of its span, and the others over the upper half', () => {
    expect(delays(3, 0.5)).toEqual([250, 750, 1500]);
  });

  it('forgets earlier failures only after five stable seconds', () => {
    const tired: BackoffState = { failures: 6, connectedAt: null };
    const flapped = afterFailure(afterConnect(tired, 1000), 5999, ALMOST_ONE, RULES);
    expect([flapped.delayMs, flapped.state.failures]).toEqual([30_000, 7]);
    const stable = afterFailure(afterConnect(tired, 1000), 6000, ALMOST_ONE, RULES);
    expect([stable.delayMs, stable.state.failures]).toEqual([500, 1]);
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

  it('spreads mails that failed together', () => {
    expect([after(1, 0, 0), after(1, 0, 0.999)]).toEqual([
      { kind: 'retry', at: 3750 },
      { kind: 'retry', at: 6248 },
    ]);
  });

  it('tries for the last time after 24 hours, then gives up', () => {
    expect(after(30, 24 * HOUR - 1)).toEqual({ kind: 'retry', at: 24 * HOUR });
    expect(after(31, 24 * HOUR)).toEqual({ kind: 'give-up' });
  });

  it('ends, whatever chance says', () => {
    let [now, attempts] = [0, 0];
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

describe('a peer', () => {
  const RULES = { pingEveryMs: 10_000, deadAfterMs: 25_000 };

  it('pings at its pace, also while much is heard', () => {
    expect(judgeLiveness({ lastHeardAt: 9_999, lastPingAt: 0 }, 9_999, RULES)).toBe('alive');
    expect(judgeLiveness({ lastHeardAt: 10_000, lastPingAt: 0 }, 10_000, RULES)).toBe('ping-due');
  });

  it('is dead 25 s after the last thing heard, not a moment before', () => {
    expect(judgeLiveness({ lastHeardAt: 0, lastPingAt: 20_000 }, 24_999, RULES)).toBe('alive');
    expect(judgeLiveness({ lastHeardAt: 0, lastPingAt: 20_000 }, 25_000, RULES)).toBe('dead');
  });
});
