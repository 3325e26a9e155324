import { expect, it } from 'vitest';
import { judgeLiveness } from './liveness.ts';

const RULES = { pingEveryMs: 10_000, deadAfterMs: 25_000 };

it('pings at its pace, also while much is heard', () => {
  expect(judgeLiveness({ lastHeardAt: 9_999, lastPingAt: 0 }, 9_999, RULES)).toBe('alive');
  expect(judgeLiveness({ lastHeardAt: 10_000, lastPingAt: 0 }, 10_000, RULES)).toBe('ping-due');
});

it('is dead 25 s after the last thing heard, not a moment before', () => {
  expect(judgeLiveness({ lastHeardAt: 0, lastPingAt: 20_000 }, 24_999, RULES)).toBe('alive');
  expect(judgeLiveness({ lastHeardAt: 0, lastPingAt: 20_000 }, 25_000, RULES)).toBe('dead');
});
