import { describe, expect, it } from 'vitest';
import { SerialQueue, SerialRuns } from './serial.ts';

const FULL = new Error('full');
const queueOf = (maxWaiting = 100): SerialQueue => new SerialQueue({ maxWaiting, full: () => FULL });

/** A task that ends only when the test calls end() or fail(). */
const held = <T>(value: T) => {
  let end = (): void => {};
  let fail = (_error: Error): void => {};
  let begun = 0;
  const task = (): Promise<T> => {
    begun += 1;
    return new Promise((resolve, reject) => {
      end = () => resolve(value);
      fail = reject;
    });
  };
  return { task, end: () => end(), fail: (error: Error) => fail(error), begun: () => begun };
};

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

describe('a serial queue', () => {
  it('runs one task at a time, in order, and returns each result', async () => {
    const queue = queueOf();
    const first = held('a');
    const second = held('b');
    const results = [queue.run(first.task), queue.run(second.task), queue.run(() => 'c')];
    await settle();
    expect([first.begun(), second.begun()]).toEqual([1, 0]);
    first.end();
    await settle();
    expect(second.begun()).toBe(1);
    second.end();
    expect(await Promise.all(results)).toEqual(['a', 'b', 'c']);
  });

  it('does not start a task inside run()', async () => {
    const task = held('a');
    const queue = queueOf();
    const result = queue.run(task.task);
    expect(task.begun()).toBe(0);
    await settle();
    task.end();
    expect(await result).toBe('a');
  });

  it('continues after a task that rejects or throws', async () => {
    const queue = queueOf();
    const results = await Promise.allSettled([
      queue.run(() => Promise.reject(new Error('rejected'))),
      queue.run(() => {
        throw new Error('thrown');
      }),
      queue.run(() => 'fine'),
    ]);
    expect(results.map((result) => (result.status === 'fulfilled' ? result.value : String(result.reason)))).toEqual([
      'Error: rejected',
      'Error: thrown',
      'fine',
    ]);
  });

  it('rejects tasks beyond its limit, and accepts tasks again once there is room', async () => {
    const queue = queueOf(2);
    const running = held('running');
    const all = [queue.run(running.task), queue.run(() => 1), queue.run(() => 2)];
    await expect(queue.run(() => 3)).rejects.toBe(FULL);
    await settle();
    await expect(queue.run(() => 3)).rejects.toBe(FULL);
    running.end();
    await Promise.all(all);
    expect(await queue.run(() => 3)).toBe(3);
  });

  it('drops a waiting task at once when its signal is aborted, and frees its place', async () => {
    const queue = queueOf(1);
    const running = held('running');
    const first = queue.run(running.task);
    const leaving = new AbortController();
    const dropped = held('dropped');
    const left = queue.run(dropped.task, leaving.signal);
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    const next = queue.run(() => 'next');
    await expect(queue.run(() => 'late', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    running.end();
    expect([await first, await next, dropped.begun()]).toEqual(['running', 'next', 0]);
  });

  it('does not stop a running task when its signal is aborted', async () => {
    const queue = queueOf();
    const running = held('whole');
    const leaving = new AbortController();
    const result = queue.run(running.task, leaving.signal);
    await settle();
    leaving.abort(new Error('left'));
    running.end();
    expect(await result).toBe('whole');
  });

  it('is settled when all earlier tasks have ended, even behind a dropped task', async () => {
    const queue = queueOf();
    await queue.settled();
    const first = held('a');
    const later = held('b');
    void queue.run(first.task);
    const leaving = new AbortController();
    const left = queue.run(() => 'left', leaving.signal).catch(() => 'left');
    let isSettled = false;
    const settled = queue.settled().then(() => {
      isSettled = true;
    });
    void queue.run(later.task);
    leaving.abort();
    await left;
    await settle();
    expect(isSettled).toBe(false);
    first.end();
    await settled;
    later.end();
  });
});

describe('SerialRuns', () => {
  it('serves every caller that arrives during a run with the same next run', async () => {
    const runs: (() => void)[] = [];
    const serial = new SerialRuns(() => new Promise<number>((resolve) => runs.push(() => resolve(runs.length))));
    const first = [serial.run(), serial.run()];
    await settle();
    expect(runs).toHaveLength(1);
    const second = [serial.run(), serial.run(), serial.run()];
    await settle();
    expect(runs).toHaveLength(1);
    runs[0]?.();
    expect(await Promise.all(first)).toEqual([1, 1]);
    await settle();
    runs[1]?.();
    expect([await Promise.all(second), runs.length]).toEqual([[2, 2, 2], 2]);
  });

  it('continues after a failed run', async () => {
    let count = 0;
    const serial = new SerialRuns(async () => {
      count += 1;
      if (count === 1) throw new Error('first');
      return count;
    });
    await expect(serial.run()).rejects.toThrow('first');
    await serial.settled();
    expect(await serial.run()).toBe(2);
  });

  it('is settled only after the waiting run has ended', async () => {
    let ended = 0;
    const serial = new SerialRuns(async () => {
      await settle();
      ended += 1;
    });
    void serial.run();
    await Promise.resolve();
    await Promise.resolve();
    void serial.run();
    await serial.settled();
    expect(ended).toBe(2);
  });
});
