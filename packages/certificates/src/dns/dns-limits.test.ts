import { expect, it } from 'vitest';
import { DNS_LIMITS } from './dns-limits.ts';

it('time limits that tests pass faster than people would have these values', () => {
  expect(DNS_LIMITS).toMatchObject({
    LOOKUP_TIMEOUT_MS: 2000,
    LOOKUP_TRIES: 2,
    LOOKUP_TOTAL_MS: 10_000,
  });
});
