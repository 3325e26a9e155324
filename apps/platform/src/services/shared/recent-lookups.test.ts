import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { KNOWN_USER_MS, RecentLookups } from './recent-lookups.ts';

it('a failed query rejects all waiting lookups, and the next lookup queries again', async () => {
  const answers = [Promise.reject<string>(new Error('away')), Promise.resolve('row')];
  const lookups = new RecentLookups<string>({ clock: new FakeClock(), max: 8, read: () => answers.shift()! });
  const first = lookups.find('a');
  const second = lookups.find('a');
  await expect(first).rejects.toThrow('away');
  await expect(second).rejects.toThrow('away');
  expect(await lookups.find('a')).toBe('row');
  expect(lookups.find('a')).toBe('row');
});

it('a result is reused for two seconds, and afterwards available only as the last result', async () => {
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

it('a result of a query from before a change is not given to lookups after it', async () => {
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
