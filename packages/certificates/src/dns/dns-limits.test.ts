import { expect, it } from 'vitest';
import { LOOKUP_TIMEOUT_MS, LOOKUP_TOTAL_MS, LOOKUP_TRIES } from './lookups.ts';

it('DNS time limits have their documented values', () => {
  expect({ LOOKUP_TIMEOUT_MS, LOOKUP_TRIES, LOOKUP_TOTAL_MS }).toMatchObject({
    LOOKUP_TIMEOUT_MS: 2000,
    LOOKUP_TRIES: 2,
    LOOKUP_TOTAL_MS: 10_000,
  });
});
