import { expect, it } from 'vitest';
import { UNREPORTED_VISITORS_MAX, UnreportedDrops } from './unreported-drops.ts';

it('dropped datagrams are summed up by visitor, direction and reason, and reported once', () => {
  const drops = new UnreportedDrops();
  drops.add('a:1', 'in', 'local', 1);
  drops.add('a:1', 'in', 'local', 2);
  drops.add('a:1', 'out', 'behind', 1);
  drops.add('b:1', 'in', 'too-large', 1);
  expect(drops.take()).toEqual([
    { visitor: 'a:1', direction: 'in', reason: 'local', datagrams: 3 },
    { visitor: 'b:1', direction: 'in', reason: 'too-large', datagrams: 1 },
    { visitor: 'a:1', direction: 'out', reason: 'behind', datagrams: 1 },
  ]);
  expect(drops.take()).toEqual([]);
});

it('drop reports name a bounded number of visitors, 100 per message, and lose no count', () => {
  const drops = new UnreportedDrops();
  const max = UNREPORTED_VISITORS_MAX;
  for (let n = 0; n < max + 10; n += 1) drops.add(`v:${n}`, 'out', 'path', 2);
  const messages: ReturnType<typeof drops.take>[] = [];
  for (let taken = drops.take(); taken.length > 0; taken = drops.take()) messages.push(taken);
  expect(Math.max(...messages.map(({ length }) => length))).toBe(100);
  const rows = messages.flat();
  expect(rows).toHaveLength(max + 1);
  expect(rows.at(-1)).toEqual({ visitor: '', direction: 'out', reason: 'path', datagrams: 20 });
  expect(rows.reduce((sum, { datagrams }) => sum + datagrams, 0)).toBe(2 * (max + 10));
});
