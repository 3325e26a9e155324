import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { shouldRetry } from './query-client.ts';

it.each([
  [new Fault('EDGE_AWAY'), [true, true, false]],
  [new Fault('KEY_UNKNOWN'), [false, false, false]],
  [new Fault('DATABASE_AWAY'), [false, false, false]],
  [new Fault('CLIENT_PLATFORM_UNREACHABLE'), [false, false, false]],
  [new TypeError('a bug'), [false, false, false]],
])('%s is asked for again: %j', (error, expected) => {
  expect([0, 1, 2].map((count) => shouldRetry(count, error))).toEqual(expected);
});
