import { MUX_LIMITS } from '@tunnel/mux';
import { expect, it } from 'vitest';
import { KIND_PROBE_TIMEOUT_MS } from './connection/control-dialer.ts';
import { DOCTOR_WITHIN_MS } from './doctor/doctor.ts';
import { DOCTOR_PINGS_WITHIN_MS, DOCTOR_STEP_WITHIN_MS } from './doctor/server-checks.ts';
import { LOCAL_DIAL_TIMEOUT_MS } from './local/local-service.ts';

it('time limits that tests pass on a fast clock have these values', () => {
  expect({ KIND_PROBE_TIMEOUT_MS, DOCTOR_WITHIN_MS, DOCTOR_STEP_WITHIN_MS, DOCTOR_PINGS_WITHIN_MS }).toMatchObject({
    KIND_PROBE_TIMEOUT_MS: 3000,
    DOCTOR_WITHIN_MS: 20_000,
    DOCTOR_STEP_WITHIN_MS: 5000,
    DOCTOR_PINGS_WITHIN_MS: 3000,
  });
});

it('the client says why a local dial failed before the edge gives up', () => {
  expect(MUX_LIMITS.STREAM_OPEN_TIMEOUT_MS).toBeGreaterThan(LOCAL_DIAL_TIMEOUT_MS);
});
