import { expect, it } from 'vitest';
import { boundedInteger } from './query.ts';

const BOUNDS = { default: 20, min: 1, max: 100 };

it('a number in a query has its default if absent, and its value if within its limits', () => {
  expect(boundedInteger('limit', undefined, BOUNDS)).toBe(20);
  expect(boundedInteger('limit', '100', BOUNDS)).toBe(100);
  expect(boundedInteger('limit', '007', BOUNDS)).toBe(7);
});

it.each(['0', '101', '-1', '1.5', 'x', '', '1e1', '99999999999999999999', '0000000000000001'])(
  'a number of %j is refused with the field, its limits and the given value',
  (given) => {
    expect(() => boundedInteger('limit', given, BOUNDS)).toThrow(
      `limit must be an integer from 1 to 100, got '${given}'`,
    );
  },
);
