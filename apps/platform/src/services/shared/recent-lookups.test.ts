import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { RecentLookups } from './recent-lookups.ts';

it('a query that failed fails those that wait for it, and is asked again by the next request', async () => {
  const answers = [Promise.reject<string>(new Error('away')), Promise.resolve('row')];
  const lookups = new RecentLookups<string>({ clock: new FakeClock(), max: 8, read: () => answers.shift()! });
  const [first, second] = [lookups.find('a'), lookups.find('a')];
  await expect(first).rejects.toThrow('away');
  await expect(second).rejects.toThrow('away');
  expect(await lookups.find('a')).toBe('row');
  expect(lookups.find('a')).toBe('row');
});
