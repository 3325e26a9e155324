import { expect, it } from 'vitest';
import { AUTHORITY_CALL_TIMEOUT_MS } from './acme/client/acme-http.ts';
import { LEASE_MS, LEASE_RENEW_MS, LOOK_EVERY_MS } from './acme/keeper/certificate-keeper.ts';
import { POLL_FIRST_MS, POLL_LONGEST_MS, POLL_TOTAL_MS } from './acme/keeper/finish-order.ts';

it('ACME time limits have their documented values', () => {
  expect({
    AUTHORITY_CALL_TIMEOUT_MS,
    POLL_FIRST_MS,
    POLL_LONGEST_MS,
    POLL_TOTAL_MS,
    LOOK_EVERY_MS,
    LEASE_MS,
    LEASE_RENEW_MS,
  }).toMatchObject({
    AUTHORITY_CALL_TIMEOUT_MS: 30_000,
    POLL_FIRST_MS: 500,
    POLL_LONGEST_MS: 10_000,
    POLL_TOTAL_MS: 90_000,
    LOOK_EVERY_MS: 5000,
    LEASE_MS: 60_000,
    LEASE_RENEW_MS: 20_000,
  });
});
