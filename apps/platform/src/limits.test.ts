import { expect, it } from 'vitest';
import { LIMITS } from './limits.ts';

it('time limits that tests pass on a fast clock have these values', () => {
  expect(LIMITS).toMatchObject({
    CERTIFICATES_EVERY_MS: 5000,
    CERTIFICATES_EDGE_WAIT_MS: 60_000,
    CERTIFICATES_EDGE_LOOK_MS: 200,
    CERTIFICATES_ANYWAY_MS: 60_000,
  });
});
