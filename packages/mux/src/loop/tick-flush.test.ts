// Small frames are sent once per turn, and never behind bulk data that arrived later.
import { expect, it } from 'vitest';
import { TickFlush } from './tick-flush.ts';

const turns = () => {
  const soon: (() => void)[] = [];
  const told: string[] = [];
  const tickFlush = new TickFlush((run) => soon.push(run));
  return {
    tickFlush,
    told,
    listener: (name: string) => ({ onTickFlush: () => void told.push(name) }),
    end: () => {
      for (const run of soon.splice(0)) run();
    },
    get scheduled() {
      return soon.length;
    },
  };
};

it('tickFlush calls all listeners once, in order, at the end of the turn', () => {
  const { tickFlush, told, listener, ...loop } = turns();
  tickFlush.tell(listener('a'));
  tickFlush.tell(listener('b'));
  expect(told).toEqual([]);
  loop.end();
  loop.end();
  expect(told).toEqual(['a', 'b']);
});

it('tickFlush calls waiting listeners before bulk, and only later ones at the end', () => {
  const { tickFlush, told, listener, ...loop } = turns();
  tickFlush.tell(listener('a'));
  tickFlush.flushNow();
  expect(told).toEqual(['a']);
  tickFlush.flushNow();
  tickFlush.tell(listener('b'));
  expect(told).toEqual(['a']);
  loop.end();
  expect(told).toEqual(['a', 'b']);
});

it('tickFlush defers a listener that registers during the flush to the next turn', () => {
  const loop = turns();
  loop.tickFlush.tell({ onTickFlush: () => loop.tickFlush.tell(loop.listener('again')) });
  loop.end();
  expect([loop.told, loop.scheduled]).toEqual([[], 1]);
  loop.end();
  expect(loop.told).toEqual(['again']);
});
