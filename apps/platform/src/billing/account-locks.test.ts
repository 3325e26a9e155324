import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { KeyedMutex } from './account-locks.ts';

const fixture = (atOnce = 2) => {
  const clock = new FakeClock();
  const mutex = new KeyedMutex({ clock, atOnce, waitMs: 1000, tooLate: () => new Error('too late') });
  const begun: string[] = [];
  const take = async (key: string, name = key): Promise<() => void> => {
    const end = await mutex.acquire(key);
    begun.push(name);
    return end;
  };
  return { clock, begun, take };
};
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

it('one key has one holder, and the others come in the order in which they asked', async () => {
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

it('so many hold a turn at once; one whose key is held lets others pass', async () => {
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

it('who waited too long is told so, and takes no turn later', async () => {
  const { clock, begun, take } = fixture();
  const end = await take('a');
  const late = take('a', 'late').catch((error: unknown) => error);
  await clock.advance(1000);
  expect(await late).toEqual(new Error('too late'));
  end();
  (await take('a', 'next'))();
  expect(begun).toEqual(['a', 'next']);
});
