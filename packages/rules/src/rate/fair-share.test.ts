import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairShare } from './fair-share.ts';

describe('a shared stock', () => {
  it('is taken back from the holder with the most, and only if it has more than its part', () => {
    const shares = new FairShare({ limit: 8, perHolder: 2 });
    expect([shares.largest, shares.mostBeyond]).toEqual([null, null]);
    shares.take('modest', 2);
    expect([shares.largest, shares.mostBeyond]).toEqual(['modest', null]);
    shares.take('greedy', 3);
    shares.take('greediest', 4);
    expect(shares.mostBeyond).toBe('greediest');
    shares.give('greediest', 2);
    expect(shares.mostBeyond).toBe('greedy');
    shares.give('greedy');
    expect(shares.mostBeyond).toBeNull();
  });

  it('is never taken back from the unlimited holder', () => {
    const shares = new FairShare({ limit: 8, perHolder: 2, unlimited: 'operator' });
    shares.take('operator', 7);
    shares.take('modest', 1);
    expect([shares.largest, shares.mostBeyond]).toEqual(['modest', null]);
    shares.give('operator', 7);
    expect([shares.taken, shares.held()]).toEqual([1, { modest: 1 }]);
  });
});

const LIMIT = 24;
const NAMES = ['a', 'b', 'c', 'd', 'e', 'operator'];

const move = fc.record({
  does: fc.constantFrom('take', 'take', 'take', 'give', 'vanish'),
  name: fc.constantFrom(...NAMES),
  count: fc.integer({ min: 1, max: 4 }),
});

it('in any order of events, stock is taken back from the largest holder above its part, all of it is usable, and none leaks', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.array(move, { maxLength: 150, size: 'max' }), (perHolder, moves) => {
      const shares = new FairShare({ limit: LIMIT, perHolder, unlimited: 'operator' });
      const model = new Map(NAMES.map((name) => [name, 0]));
      const heldBy = (name: string): number => model.get(name) ?? 0;
      const sum = (): number => [...model.values()].reduce((all, one) => all + one, 0);
      const add = (name: string, count: number): void => void model.set(name, heldBy(name) + count);
      const most = (): number => Math.max(...NAMES.slice(0, -1).map(heldBy));
      for (const { does, name, count } of moves) {
        if (does === 'take') {
          // A taker that finds the stock exhausted takes from the largest holder first, like the real users of FairShare.
          while (sum() + count > LIMIT) {
            const giver = shares.mostBeyond;
            expect(giver === null).toBe(most() <= perHolder);
            if (giver === null) break;
            expect(heldBy(giver)).toBe(most());
            expect(giver).not.toBe('operator');
            shares.give(giver);
            add(giver, -1);
          }
          if (sum() + count > LIMIT) continue;
          shares.take(name, count);
          add(name, count);
        } else {
          const given = does === 'vanish' ? heldBy(name) : Math.min(count, heldBy(name));
          if (given === 0) continue;
          shares.give(name, given);
          add(name, -given);
        }
        expect(shares.taken).toBe(sum());
        expect(shares.held()).toEqual(Object.fromEntries([...model].filter(([, held]) => held > 0)));
        expect(shares.largest === null ? 0 : heldBy(shares.largest)).toBe(most());
      }
      for (const held of NAMES) shares.give(held, heldBy(held));
      expect([shares.taken, shares.held(), shares.largest]).toEqual([0, {}, null]);
    }),
    { numRuns: 40 },
  );
});
