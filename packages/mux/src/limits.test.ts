import { expect, it } from 'vitest';
import { MUX_LIMITS } from './limits.ts';

it('time limits that tests pass on a clock of their own have these values', () => {
  expect(MUX_LIMITS).toMatchObject({
    STREAM_OPEN_TIMEOUT_MS: 15_000,
    CARRIER_WAIT_MS: 3000,
    CARRIER_PING_INTERVAL_MS: 10_000,
    CARRIER_DEAD_AFTER_MS: 25_000,
    CARRIER_LINGER_MS: 2000,
    CARRIER_LINGER_BYTES: 64 * 1024,
    CARRIER_ROTATE_AFTER_MS: 24 * 3600 * 1000,
    DATAGRAM_BEHIND_MS: 100,
    DATAGRAM_SEEN_INTERVAL_MS: 10,
  });
});
