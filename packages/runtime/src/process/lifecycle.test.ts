import { EventEmitter } from 'node:events';
import { FakeClock } from '@tunnel/testkit';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Logger } from '../logger/logger.ts';
import { Lifecycle, onSignals } from './lifecycle.ts';

let clock: FakeClock;
let seen: string[];
let lifecycle: Lifecycle;

const recordingLogger = (): Logger => {
  const record = (fields: object): void => void seen.push(`logged ${(fields as { part: string }).part}`);
  const logger: Logger = {
    debug: record,
    info: record,
    warn: record,
    error: record,
    child: () => logger,
    droppedLines: 0,
    flush: async () => {},
  };
  return logger;
};

const add = (name: string, start: () => Promise<void> = async () => {}, stop: () => Promise<void> = async () => {}) =>
  lifecycle.add({
    name,
    start: async () => {
      seen.push(`start ${name}`);
      await start();
    },
    stop: async () => {
      seen.push(`stop ${name}`);
      await stop();
    },
  });

const never = (): Promise<void> => new Promise(() => {});
const failing = (text: string) => (): Promise<void> => Promise.reject(new Error(text));

beforeEach(() => {
  clock = new FakeClock();
  seen = [];
  lifecycle = new Lifecycle({ logger: recordingLogger(), clock });
});

describe('the start of a lifecycle', () => {
  test('runs in order, and the stop in reverse order', async () => {
    for (const name of ['a', 'b', 'c']) add(name);
    await lifecycle.start();
    await lifecycle.stop({ deadlineMs: 1000 });
    expect(seen).toEqual(['start a', 'start b', 'start c', 'stop c', 'stop b', 'stop a']);
    expect(clock.pendingTimers).toBe(0);
  });

  test('that fails stops the started parts in reverse order and rethrows the error', async () => {
    add('a');
    add('b');
    add('c', failing('port taken'));
    add('d');
    await expect(lifecycle.start()).rejects.toThrow('port taken');
    expect(seen).toEqual(['start a', 'start b', 'start c', 'stop b', 'stop a']);
  });

  test('happens once, and later parts are refused', async () => {
    await lifecycle.start();
    await expect(lifecycle.start()).rejects.toThrow('the lifecycle is running');
    expect(() => add('late')).toThrow('after the start');
  });
});

describe('the stop of a lifecycle', () => {
  test('continues after a part that fails, and never rejects', async () => {
    add('a');
    add('b', undefined, failing('broken'));
    await lifecycle.start();
    await lifecycle.stop({ deadlineMs: 1000 });
    expect(seen.slice(2)).toEqual(['stop b', 'logged b', 'stop a']);
  });

  test('abandons a part at the deadline, logs it, and still stops the other parts', async () => {
    add('a');
    add('b', undefined, never);
    add('c', undefined, never);
    await lifecycle.start();
    const stopped = lifecycle.stop({ deadlineMs: 1000 });
    await clock.advance(999);
    expect(seen.slice(3)).toEqual(['stop c']);
    await clock.advance(1);
    expect(seen.slice(3)).toEqual(['stop c', 'logged c', 'stop b']);
    await clock.advance(250);
    await stopped;
    expect(seen.slice(3)).toEqual(['stop c', 'logged c', 'stop b', 'logged b', 'stop a']);
  });

  test('happens once when requested twice', async () => {
    add('a');
    await lifecycle.start();
    await Promise.all([lifecycle.stop({ deadlineMs: 1000 }), lifecycle.stop({ deadlineMs: 5 })]);
    expect(seen).toEqual(['start a', 'stop a']);
  });
});

describe('a stop during the start', () => {
  test('waits for the part that is starting, and starts no further part', async () => {
    let finish = (): void => {};
    add('a');
    add('b', () => new Promise((resolve) => (finish = resolve)));
    add('c');
    const started = lifecycle.start();
    await clock.advance(0);
    const stopped = lifecycle.stop({ deadlineMs: 1000 });
    finish();
    await expect(started).rejects.toThrow('stopped while starting');
    await stopped;
    expect(seen).toEqual(['start a', 'start b', 'stop b', 'stop a']);
  });

  test('does not hang when the starting part fails', async () => {
    let fail = (_: Error): void => {};
    add('a');
    add('b', () => new Promise((_, reject) => (fail = reject)));
    const started = lifecycle.start();
    await clock.advance(0);
    const stopped = lifecycle.stop({ deadlineMs: 1000 });
    fail(new Error('port taken'));
    await expect(started).rejects.toThrow('port taken');
    await stopped;
    expect(seen).toEqual(['start a', 'start b', 'stop a']);
  });

  test('also stops a part that finishes its start after the deadline', async () => {
    let finish = (): void => {};
    add('a', () => new Promise((resolve) => (finish = resolve)));
    const started = lifecycle.start();
    const stopped = lifecycle.stop({ deadlineMs: 1000 });
    await clock.advance(1000);
    await stopped;
    finish();
    await expect(started).rejects.toThrow('stopped while starting');
    expect(seen).toEqual(['start a', 'stop a']);
  });
});

const listen = () => {
  const fake = new FakeClock();
  const source = new EventEmitter();
  const heard: string[] = [];
  onSignals({
    signals: ['SIGINT', 'SIGTERM'],
    sameWithinMs: 1000,
    onFirst: (signal) => heard.push(`first ${signal}`),
    onSecond: (signal) => heard.push(`second ${signal}`),
    clock: fake,
    source,
  });
  return { fake, source, heard };
};

test('two signals within a second count as one Ctrl-C', async () => {
  const { fake, source, heard } = listen();
  source.emit('SIGINT', 'SIGINT');
  await fake.advance(1000);
  source.emit('SIGTERM', 'SIGTERM');
  expect(heard).toEqual(['first SIGINT']);
});

test('a later signal counts as the second, and further signals are ignored', async () => {
  const { fake, source, heard } = listen();
  source.emit('SIGTERM', 'SIGTERM');
  await fake.advance(1001);
  source.emit('SIGINT', 'SIGINT');
  source.emit('SIGINT', 'SIGINT');
  expect(heard).toEqual(['first SIGTERM', 'second SIGINT']);
});
