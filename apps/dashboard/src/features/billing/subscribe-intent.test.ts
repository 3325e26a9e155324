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

it('the intent to subscribe is taken once, by the same account', () => {
  const store = newStore();
  rememberSubscribing('ann', 1000, store);
  expect(takeSubscribing('ann', 1000 + MINUTE_MS, store)).toBe(true);
  expect(takeSubscribing('ann', 1000 + MINUTE_MS, store)).toBe(false);
});

it('the intent to subscribe is dropped when another account signs in to the same tab', () => {
  const store = newStore();
  rememberSubscribing('ann', 1000, store);
  expect(takeSubscribing('bob', 2000, store)).toBe(false);
  expect(takeSubscribing('ann', 2000, store)).toBe(false);
});

it('the intent to subscribe expires after 30 minutes, and is ignored with a time in the future', () => {
  for (const now of [1000 + 30 * MINUTE_MS, 999]) {
    const store = newStore();
    rememberSubscribing('ann', 1000, store);
    expect(takeSubscribing('ann', now, store)).toBe(false);
  }
});

it.each([undefined, '', 'null', '{', '{}', '["ann"]', '["ann","1000"]'])('the stored intent %j is ignored', (text) => {
  expect(takeSubscribing('ann', 1000, newStore(text))).toBe(false);
});

it('a browser without storage causes no error', () => {
  const refuses = (): never => {
    throw new Error('denied');
  };
  rememberSubscribing('ann', 1000, refuses);
  expect(takeSubscribing('ann', 1000, refuses)).toBe(false);
});
