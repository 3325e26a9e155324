import type { Logger } from '@tunnel/runtime';
import { expect, it } from 'vitest';
import { RefusalLog } from './relay-totals.ts';

it('a flood of refusals is one line a second and reason, which says how many it stands for', () => {
  const lines: object[] = [];
  let now = 0;
  const logger = { warn: (fields: object) => lines.push(fields) } as unknown as Logger;
  const log = new RefusalLog(logger, () => now);
  for (let n = 0; n < 1000; n++) log.note('tunnel-limit', {}, 'full');
  log.note('address-limit', {}, 'full');
  now = 1000;
  log.note('tunnel-limit', { limit: 2 }, 'full');
  expect(lines).toEqual([
    { reason: 'tunnel-limit' },
    { reason: 'address-limit' },
    { reason: 'tunnel-limit', limit: 2, unsaid: 999 },
  ]);
});
