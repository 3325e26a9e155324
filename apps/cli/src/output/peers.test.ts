import { expect, it } from 'vitest';
import { pathText } from './peers.ts';

it.each([
  [null, 'direct'],
  [0.4, 'direct (0.4 ms)'],
  [9.9, 'direct (9.9 ms)'],
  [9.95, 'direct (10 ms)'],
  [41.6, 'direct (42 ms)'],
])('a direct path with a round trip of %s ms is shown as %j, with a decimal below 10 ms', (rttMs, text) => {
  expect(pathText({ path: 'direct', reason: '', rttMs })).toBe(text);
});
