import { expect, it } from 'vitest';
import type { Logger } from '../logger/logger.ts';
import { InternalErrors } from './internal-errors.ts';

it('each place of an error logs one stack per second, and counts every error', () => {
  const lines: { where: string; err: Error; suppressed?: number }[] = [];
  let now = 0;
  const errors = new InternalErrors({ error: (fields: never) => lines.push(fields) } as unknown as Logger, () => now);
  const error = new Error('x');
  for (let n = 0; n < 5; n += 1) errors.report(error, 'socket.data');
  errors.report(error, 'stream.data');
  now = 1000;
  errors.report(error, 'socket.data');
  expect(lines).toEqual([
    { where: 'socket.data', err: error },
    { where: 'stream.data', err: error },
    { where: 'socket.data', err: error, suppressed: 4 },
  ]);
  expect(Object.fromEntries(errors.counts)).toEqual({ 'socket.data': 6, 'stream.data': 1 });
});
