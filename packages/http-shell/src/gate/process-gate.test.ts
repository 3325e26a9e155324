import { createLogger, systemClock } from '@tunnel/runtime';
import { expect, it } from 'vitest';
import { createStackGate } from './process-gate.ts';

const logger = createLogger({ level: 'silent', format: 'json' });

it.each([
  [1024, 256],
  [4096, 512],
  [1_048_576, 1280],
])('with %i descriptors, edge and platform of one server hold %i API connections', (descriptors, limit) => {
  expect(createStackGate({ clock: systemClock, logger, descriptors }).admission.limits.api).toBe(limit);
});
