import { expect, it } from 'vitest';
import { LogLimiter } from './log-limiter.ts';
import type { Logger } from './logger.ts';

const limited = () => {
  const lines: object[] = [];
  const time = { now: 0 };
  const logger = { warn: (fields: object) => lines.push(fields) } as unknown as Logger;
  return { lines, time, log: new LogLimiter(logger, () => time.now) };
};

it('a flood is one line a second and key, which says how many it stands for', () => {
  const { lines, time, log } = limited();
  for (let n = 0; n < 1000; n++) log.log('warn', 'tunnel-limit', { key: 'tunnel-limit' }, 'full');
  log.log('warn', 'address-limit', { key: 'address-limit' }, 'full');
  time.now = 1000;
  log.log('warn', 'tunnel-limit', { limit: 2 }, 'full', 3);
  expect(lines).toEqual([{ key: 'tunnel-limit' }, { key: 'address-limit' }, { limit: 2, unsaid: 999 + 2 }]);
});

it('forgets keys rather than hold one for each account there ever was', () => {
  const { lines, log } = limited();
  log.log('warn', 'first', {}, 'said');
  for (let n = 0; n < 5000; n++) log.log('warn', `account-${n}`, {}, 'said');
  const before = lines.length;
  log.log('warn', 'first', {}, 'said again: it was forgotten');
  log.log('warn', 'account-4999', {}, 'left out: it was not');
  expect(lines.length).toBe(before + 1);
});
