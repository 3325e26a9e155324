import { expect, it } from 'vitest';
import { decideMailRetry } from './mail-retry.ts';

const HOUR = 3_600_000;
const rules = { minMs: 5000, maxMs: HOUR, giveUpAfterMs: 24 * HOUR };
const after = (attempts: number, now: number, random = 0.5) =>
  decideMailRetry({ writtenAt: 0, attempts }, now, random, rules);

it('waits twice as long after each failure, up to an hour', () => {
  const delays = [1, 2, 3, 10, 11, 500].map((attempts) => after(attempts, 1000));
  expect(delays).toEqual(
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
