import { expect, it } from 'vitest';
import { PEER_GOODBYE_MS, PEER_HANDSHAKE_RETRY_MS, PEER_LOST_RETRY_MS } from './direct/direct-link.ts';
import { PEER_OBSERVE_MAX_MS, PEER_OBSERVE_PING_EVERY_MS } from './direct/edge-observer.ts';
import { PEER_HANDSHAKE_TIMEOUT_MS } from './sealed/sealed-carrier.ts';
import { PEER_ABSENT_MS } from './session/peer-publisher.ts';
import { PEER_LOOK_EVERY_MS } from './session/peer-session.ts';

it('the timeouts of peers have the documented values', () => {
  expect({
    PEER_HANDSHAKE_TIMEOUT_MS,
    PEER_OBSERVE_PING_EVERY_MS,
    PEER_OBSERVE_MAX_MS,
    PEER_LOOK_EVERY_MS,
    PEER_LOST_RETRY_MS,
    PEER_HANDSHAKE_RETRY_MS,
    PEER_GOODBYE_MS,
    PEER_ABSENT_MS,
  }).toMatchObject({
    PEER_HANDSHAKE_TIMEOUT_MS: 10_000,
    PEER_OBSERVE_PING_EVERY_MS: 200,
    PEER_OBSERVE_MAX_MS: 10_000,
    PEER_LOOK_EVERY_MS: 500,
    PEER_LOST_RETRY_MS: 5000,
    PEER_HANDSHAKE_RETRY_MS: 30_000,
    PEER_GOODBYE_MS: 1000,
    PEER_ABSENT_MS: 30_000,
  });
});
