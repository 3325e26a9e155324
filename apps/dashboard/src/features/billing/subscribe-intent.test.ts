import { expect, it } from 'vitest';
import { rememberSubscribing, takeSubscribing } from './subscribe-intent.ts';

const MINUTE_MS = 60_000;

const newStore = (text?: string) => {
  const kept = new Map(text === undefined ? [] : [['tunnel.subscribing', text]]);
  const store = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  };
  return () => store;
};

it('is taken once, by the account that left', () => {
  const store = newStore();
  rememberSubscribing('ann', 1000, store);
  expect(takeSubscribing('ann', 1000 + MINUTE_MS, store)).toBe(true);
  expect(takeSubscribing('ann', 1000 + MINUTE_MS, store)).toBe(false);
});

it('never subscribes whoever logs in after them in the same tab', () => {
  const store = newStore();
  rememberSubscribing('ann', 1000, store);
  expect(takeSubscribing('bob', 2000, store)).toBe(false);
  expect(takeSubscribing('ann', 2000, store)).toBe(false);
});

it('is over after half an hour, and never of the future', () => {
  for (const now of [1000 + 30 * MINUTE_MS, 999]) {
    const store = newStore();
    rememberSubscribing('ann', 1000, store);
    expect(takeSubscribing('ann', now, store)).toBe(false);
  }
});

it.each([undefined, '', 'null', '{', '{}', '["ann"]', '["ann","1000"]'])('is not there: %j', (text) => {
  expect(takeSubscribing('ann', 1000, newStore(text))).toBe(false);
});

it('a browser that keeps nothing is no problem', () => {
  const refuses = (): never => {
    throw new Error('denied');
  };
  rememberSubscribing('ann', 1000, refuses);
  expect(takeSubscribing('ann', 1000, refuses)).toBe(false);
});
