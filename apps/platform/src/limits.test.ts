import { expect, it } from 'vitest';
import {
  CERTIFICATES_ANYWAY_MS,
  CERTIFICATES_EDGE_LOOK_MS,
  CERTIFICATES_EDGE_WAIT_MS,
  CERTIFICATES_EVERY_MS,
} from './services/certificates/platform-certificates.ts';

it('time limits that tests pass on a fake clock have the expected values', () => {
  expect({
    CERTIFICATES_EVERY_MS,
    CERTIFICATES_EDGE_WAIT_MS,
    CERTIFICATES_EDGE_LOOK_MS,
    CERTIFICATES_ANYWAY_MS,
  }).toMatchObject({
    CERTIFICATES_EVERY_MS: 5000,
    CERTIFICATES_EDGE_WAIT_MS: 60_000,
    CERTIFICATES_EDGE_LOOK_MS: 200,
    CERTIFICATES_ANYWAY_MS: 60_000,
  });
});
