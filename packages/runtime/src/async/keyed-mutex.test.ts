import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { KeyedMutex } from './keyed-mutex.ts';

const fixture = ({ atOnce = 2, maxWaiting = 10 } = {}) => {
  const clock = new FakeClock();
  const mutex = new KeyedMutex({ clock, atOnce, maxWaiting, waitMs: 1000, busy: () => new Error('busy') });
  const begun: string[] = [];
  /** Takes a key. Resolves once the turn has begun, with a function that ends the turn. */
  const take = (key: string, name = key, signal?: AbortSignal): Promise<() => void> =>
    new Promise((hasBegun, fail) => {
      const work = (): Promise<void> =>
        new Promise((end) => {
          begun.push(name);
          hasBegun(end);
        });
      mutex.run(key, work, signal).catch(fail);
    });
  return { clock, mutex, begun, take };
};
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

it('a key has one holder at a time, and waiting callers get it in order', async () => {
  const { begun, take } = fixture();
  const end = await take('a', 'first');
  const second = take('a', 'second');
  const third = take('a', 'third');
  await settle();
  expect(begun).toEqual(['first']);
  end();
  const endSecond = await second;
  expect(begun).toEqual(['first', 'second']);
  endSecond();
  (await third)();
  expect(begun).toEqual(['first', 'second', 'third']);
});

it('several keys are held at once up to the limit, and a blocked key does not block others', async () => {
  const { begun, take } = fixture();
  const endA = await take('a');
  const endB = await take('b');
  void take('a', 'a again');
  const endC = take('c');
  await settle();
  expect(begun).toEqual(['a', 'b']);
  endB();
  await endC;
  expect(begun).toEqual(['a', 'b', 'c']);
  endA();
  await settle();
  expect(begun).toEqual(['a', 'b', 'c', 'a again']);
});

it('a caller that waits too long gets an error and is not served later', async () => {
  const { clock, begun, take } = fixture();
  const end = await take('a');
  const late = take('a', 'late').catch((error: unknown) => error);
  await clock.advance(1000);
  expect(await late).toEqual(new Error('busy'));
  end();
  await settle();
  (await take('a', 'next'))();
  expect(begun).toEqual(['a', 'next']);
});

it('a caller is rejected at once when too many callers wait', async () => {
  const { begun, take } = fixture({ maxWaiting: 1 });
  const end = await take('a');
  const second = take('a', 'second');
  await expect(take('a', 'third')).rejects.toThrow('busy');
  end();
  (await second)();
  expect(begun).toEqual(['a', 'second']);
});

it('a caller that aborts while waiting is not served, and its place becomes free', async () => {
  const { begun, take } = fixture({ maxWaiting: 1 });
  const end = await take('a');
  const leaving = new AbortController();
  const left = take('a', 'left', leaving.signal);
  leaving.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  await expect(take('b', 'gone', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
  const next = take('a', 'next');
  end();
  (await next)();
  expect(begun).toEqual(['a', 'next']);
});

it('a task that rejects or throws releases the key, and its caller gets the error', async () => {
  const { mutex, take } = fixture();
  await expect(mutex.run('a', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  const thrown = (): Promise<never> => {
    throw new Error('thrown');
  };
  await expect(mutex.run('a', thrown)).rejects.toThrow('thrown');
  (await take('a'))();
});
