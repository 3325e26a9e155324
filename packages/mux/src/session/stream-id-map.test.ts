import fc from 'fast-check';
import { expect, it } from 'vitest';
import { StreamIdMap } from './stream-id-map.ts';

it('StreamIdMap behaves like a Map for any operations, even with colliding ids', () => {
  // Ids 64 and 128 slots apart, to cause collisions, and odd ids beside even ids.
  const id = fc.tuple(
    fc.integer({ min: 0, max: 5 }),
    fc.constantFrom(0, 128, 256, 1024),
    fc.integer({ min: 0, max: 1 }),
  );
  const step = fc.record({ id: id.map(([low, high, odd]) => low * 2 + high + odd + 2), adds: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const table = new StreamIdMap<{ id: number }>();
      const model = new Map<number, { id: number }>();
      for (const { id: given, adds } of steps) {
        if (!adds) expect(table.delete(given)).toBe(model.delete(given));
        else if (!model.has(given)) {
          const item = { id: given };
          table.add(item);
          model.set(given, item);
        }
        for (const one of new Set(steps.map((other) => other.id))) expect(table.get(one)).toBe(model.get(one));
        expect(table.size).toBe(model.size);
      }
      expect(table.values().sort((a, b) => a.id - b.id)).toEqual([...model.values()].sort((a, b) => a.id - b.id));
    }),
  );
});

it('StreamIdMap grows during a flood and shrinks afterwards', () => {
  const table = new StreamIdMap<{ id: number }>();
  for (let id = 2; id <= 8000; id += 2) table.add({ id });
  expect([table.size, table.get(7998)?.id, table.get(3)]).toEqual([4000, 7998, undefined]);
  let deleted = 0;
  for (let id = 2; id < 8000; id += 2) deleted += Number(table.delete(id));
  expect(deleted).toBe(3999);
  expect([table.size, table.get(8000)?.id, table.delete(2)]).toEqual([1, 8000, false]);
});
