import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LinkedSet, type ListNode } from './linked-set.ts';

it('a linked set behaves like a Set in any order of operations, and a deleted node keeps no references', () => {
  const step = fc.record({ id: fc.integer({ min: 0, max: 9 }), adds: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const nodes = new Map<number, ListNode<number>>();
      const linked = new LinkedSet<number>();
      const model = new Set<number>();
      for (const { id, adds } of steps) {
        const node = nodes.get(id) ?? null;
        if (!adds) {
          expect(linked.delete(node)).toBe(model.delete(id));
          if (node !== null) expect([node.item, node.before, node.after]).toEqual([null, null, null]);
        } else if (!model.has(id)) {
          nodes.set(id, linked.add(id));
          model.add(id);
        }
        expect([...linked]).toEqual([...model]);
        expect([linked.size, linked.first]).toEqual([model.size, [...model][0] ?? null]);
      }
    }),
  );
});
