import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { KNOWN_USER_MS, RecentLookups } from './recent-lookups.ts';

it('a query that failed fails those that wait for it, and is asked again by the next request', async () => {
  const answers = [Promise.reject<string>(new Error('away')), Promise.resolve('row')];
  const lookups = new RecentLookups<string>({ clock: new FakeClock(), max: 8, read: () => answers.shift()! });
  const first = lookups.find('a');
  const second = lookups.find('a');
  await expect(first).rejects.toThrow('away');
  await expect(second).rejects.toThrow('away');
  expect(await lookups.find('a')).toBe('row');
  expect(lookups.find('a')).toBe('row');
});

it('an answer is given again for two seconds, and afterwards only as the last one', async () => {
  const clock = new FakeClock();
  const rows = ['old', 'new'];
  const lookups = new RecentLookups<string>({ clock, max: 8, read: () => Promise.resolve(rows.shift()!) });
  expect(lookups.recent('a')).toBeUndefined();
  await lookups.find('a');
  await clock.advance(KNOWN_USER_MS - 1);
  expect([lookups.recent('a'), lookups.find('a')]).toEqual(['old', 'old']);
  await clock.advance(1);
  expect([lookups.recent('a'), lookups.last('a')]).toEqual([undefined, 'old']);
  expect(await lookups.find('a')).toBe('new');
  lookups.forget('a');
  expect([lookups.recent('a'), lookups.last('a')]).toEqual([undefined, undefined]);
});

it('an answer to a question of before a change is not given to those who ask after it', async () => {
  const answers: ((row: string) => void)[] = [];
  const read = (): Promise<string> => new Promise((resolve) => answers.push(resolve));
  const lookups = new RecentLookups<string>({ clock: new FakeClock(), max: 8, read });
  const before = lookups.find('a');
  lookups.forget('a');
  const after = lookups.find('a');
  answers[0]?.('old');
  expect(await before).toBe('old');
  expect(lookups.recent('a')).toBeUndefined();
  answers[1]?.('new');
  expect([await after, lookups.recent('a')]).toEqual(['new', 'new']);
});
