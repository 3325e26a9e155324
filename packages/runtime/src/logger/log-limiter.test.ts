import { expect, it } from 'vitest';
import { LogLimiter } from './log-limiter.ts';
import type { Logger } from './logger.ts';

const limited = () => {
  const lines: object[] = [];
  const time = { now: 0 };
  const logger = { warn: (fields: object) => lines.push(fields) } as unknown as Logger;
  return { lines, time, log: new LogLimiter(logger, () => time.now) };
};

it('the log limiter turns a flood into one line per second and key, with a count of suppressed lines', () => {
  const { lines, time, log } = limited();
  for (let n = 0; n < 1000; n++) log.log('warn', 'tunnel-limit', { key: 'tunnel-limit' }, 'full');
  log.log('warn', 'address-limit', { key: 'address-limit' }, 'full');
  time.now = 1000;
  log.log('warn', 'tunnel-limit', { limit: 2 }, 'full', 3);
  expect(lines).toEqual([{ key: 'tunnel-limit' }, { key: 'address-limit' }, { limit: 2, suppressed: 999 + 2 }]);
});

it('the log limiter forgets old keys to bound memory', () => {
  const { lines, log } = limited();
  log.log('warn', 'first', {}, 'said');
  for (let n = 0; n < 5000; n++) log.log('warn', `account-${n}`, {}, 'said');
  const before = lines.length;
  log.log('warn', 'first', {}, 'said again: it was forgotten');
  log.log('warn', 'account-4999', {}, 'left out: it was not');
  expect(lines.length).toBe(before + 1);
});

it('the log limiter writes at most sixty lines per minute of a flood, and counts every event', () => {
  const { lines, time, log } = limited();
  const at: number[] = [];
  let events = 0;
  for (; time.now < 300_000; time.now += 10) {
    const before = lines.length;
    log.log('warn', 'flood', {}, 'more');
    events += 1;
    if (lines.length > before) at.push(time.now);
  }
  for (const from of at) expect(at.filter((when) => when >= from && when <= from + 60_000).length).toBeLessThan(61);
  for (let from = 0; from < 240_000; from += 500) {
    expect(at.filter((when) => when >= from && when < from + 60_000).length).toBeLessThan(60);
  }
  expect(at.length).toBe(59 * 5);
  const told = lines.reduce(
    (sum: number, fields) => sum + 1 + ((fields as { suppressed?: number }).suppressed ?? 0),
    0,
  );
  expect(told).toBeGreaterThan(events - 300);
});
