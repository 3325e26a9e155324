import { MUX_LIMITS } from '@tunnel/mux';
import { expect, it } from 'vitest';
import { KIND_PROBE_TIMEOUT_MS } from './connection/control-dialer.ts';
import { DOCTOR_WITHIN_MS } from './doctor/doctor.ts';
import { DOCTOR_PINGS_WITHIN_MS, DOCTOR_STEP_WITHIN_MS } from './doctor/server-checks.ts';
import { LOCAL_DIAL_TIMEOUT_MS } from './local/local-service.ts';

it('the timeouts of the client have the documented values', () => {
  expect({ KIND_PROBE_TIMEOUT_MS, DOCTOR_WITHIN_MS, DOCTOR_STEP_WITHIN_MS, DOCTOR_PINGS_WITHIN_MS }).toMatchObject({
    KIND_PROBE_TIMEOUT_MS: 3000,
    DOCTOR_WITHIN_MS: 20_000,
    DOCTOR_STEP_WITHIN_MS: 5000,
    DOCTOR_PINGS_WITHIN_MS: 3000,
  });
});

it('a local dial times out before the edge gives up, so that the edge gets the reason', () => {
  expect(MUX_LIMITS.STREAM_OPEN_TIMEOUT_MS).toBeGreaterThan(LOCAL_DIAL_TIMEOUT_MS);
});
