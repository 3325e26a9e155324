import { expect, it } from 'vitest';
import { SSE_KEEP_ALIVE_MS } from './admin/group-feed.ts';
import { RESUME_WINDOW_MS } from './control/limits.ts';
import { TLS_HANDSHAKE_TIMEOUT_MS } from './ingress/tls/pending-handshakes.ts';
import { EDGE_LIMITS } from './limits.ts';

it('time limits tested on a fake clock have their documented values', () => {
  expect({ ...EDGE_LIMITS, RESUME_WINDOW_MS, TLS_HANDSHAKE_TIMEOUT_MS, SSE_KEEP_ALIVE_MS }).toMatchObject({
    RESUME_WINDOW_MS: 30_000,
    TLS_HANDSHAKE_TIMEOUT_MS: 10_000,
    ALERT_TIMEOUT_MS: 5000,
    SSE_KEEP_ALIVE_MS: 30_000,
  });
});
