import { expect, it } from 'vitest';
import { EDGE_LIMITS } from './limits.ts';

it('time limits that tests pass on a fast clock have these values', () => {
  expect(EDGE_LIMITS).toMatchObject({
    RESUME_WINDOW_MS: 30_000,
    TLS_HANDSHAKE_TIMEOUT_MS: 10_000,
    ALERT_TIMEOUT_MS: 5000,
    SSE_KEEP_ALIVE_MS: 30_000,
  });
});
