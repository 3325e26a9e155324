import { WIRE_LIMITS } from '@tunnel/protocol';
import { expect, it } from 'vitest';
import { CARRIER_LINGER_BYTES } from './carrier/carrier.ts';
import { DATAGRAM_SEEN_INTERVAL_MS } from './datagram/datagram-lane.ts';
import { DATAGRAM_BEHIND_MS } from './datagram/datagram-pace.ts';
import { MUX_LIMITS } from './limits.ts';
import {
  CARRIER_DEAD_AFTER_MS,
  CARRIER_PING_INTERVAL_MS,
  CARRIER_ROTATE_AFTER_MS,
} from './session/carrier-liveness.ts';

it('the timeouts of the mux have the documented values', () => {
  expect({
    ...MUX_LIMITS,
    CARRIER_PING_INTERVAL_MS,
    CARRIER_DEAD_AFTER_MS,
    CARRIER_LINGER_BYTES,
    CARRIER_ROTATE_AFTER_MS,
    DATAGRAM_BEHIND_MS,
    DATAGRAM_SEEN_INTERVAL_MS,
  }).toMatchObject({
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

it('the time until a peer is dead covers two pings, on both kinds of connection', () => {
  expect(WIRE_LIMITS.CONTROL_DEAD_AFTER_MS).toBeGreaterThan(2 * WIRE_LIMITS.CONTROL_PING_INTERVAL_MS);
  expect(CARRIER_DEAD_AFTER_MS).toBeGreaterThan(2 * CARRIER_PING_INTERVAL_MS);
});

it('stream windows are ordered by size, and a DATA frame fits the first window and a 24-bit length', () => {
  expect(MUX_LIMITS.STREAM_WINDOW_FLOOR_BYTES).toBeLessThanOrEqual(MUX_LIMITS.STREAM_WINDOW_INITIAL_BYTES);
  expect(MUX_LIMITS.STREAM_WINDOW_INITIAL_BYTES).toBeLessThanOrEqual(WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES);
  expect(WIRE_LIMITS.FRAME_DATA_MAX_BYTES).toBeLessThan(2 ** 24);
});
