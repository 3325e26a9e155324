import { expect, it } from 'vitest';
import { CLI_LIMITS } from './limits.ts';

it('time limits that tests may shorten have the documented defaults', () => {
  expect({ ...CLI_LIMITS }).toMatchObject({
    AGENT_REQUEST_TIMEOUT_MS: 5000,
    AGENT_LOOK_EVERY_MS: 1000,
    AGENT_ANSWER_TIMEOUT_MS: 5000,
  });
});
