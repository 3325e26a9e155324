import { expect, it } from 'vitest';
import { CERTIFICATES_LIMITS } from './limits.ts';

it('time limits that tests pass faster than people would have these values', () => {
  expect(CERTIFICATES_LIMITS).toMatchObject({
    AUTHORITY_CALL_TIMEOUT_MS: 30_000,
    POLL_FIRST_MS: 500,
    POLL_LONGEST_MS: 10_000,
    POLL_TOTAL_MS: 90_000,
    LOOK_EVERY_MS: 5000,
    LEASE_MS: 60_000,
    LEASE_RENEW_MS: 20_000,
  });
});
