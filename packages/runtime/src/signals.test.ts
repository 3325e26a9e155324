import { EventEmitter } from 'node:events';
import { FakeClock } from '@tunnel/testkit';
import { expect, test } from 'vitest';
import { onSignals } from './signals.ts';

const listen = () => {
  const clock = new FakeClock();
  const source = new EventEmitter();
  const seen: string[] = [];
  onSignals({
    signals: ['SIGINT', 'SIGTERM'],
    sameWithinMs: 1000,
    onFirst: (signal) => seen.push(`first ${signal}`),
    onSecond: (signal) => seen.push(`second ${signal}`),
    clock,
    source,
  });
  return { clock, source, seen };
};

test('the same Ctrl-C that arrives twice within a second is one', async () => {
  const { clock, source, seen } = listen();
  source.emit('SIGINT', 'SIGINT');
  await clock.advance(1000);
  source.emit('SIGTERM', 'SIGTERM');
  expect(seen).toEqual(['first SIGINT']);
});

test('a later one is the second, and there is no third', async () => {
  const { clock, source, seen } = listen();
  source.emit('SIGTERM', 'SIGTERM');
  await clock.advance(1001);
  source.emit('SIGINT', 'SIGINT');
  source.emit('SIGINT', 'SIGINT');
  expect(seen).toEqual(['first SIGTERM', 'second SIGINT']);
});
