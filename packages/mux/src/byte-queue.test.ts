// The queue gives back what it was given, in order, however it was cut.
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { ByteQueue } from './byte-queue.ts';

it('keeps order and length over any pushes and shifts', () => {
  const piece = fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.integer({ min: 1, max: 100_000 }));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const queue = new ByteQueue();
      const given: number[] = [];
      const taken: number[] = [];
      for (const one of pieces) {
        if (typeof one === 'number') taken.push(...queue.shift(one));
        else {
          queue.push(one, 0, one.length);
          given.push(...one);
        }
        expect(queue.length).toBe(given.length - taken.length);
      }
      while (queue.length > 0) taken.push(...queue.shift(1000));
      expect(taken).toEqual(given);
    }),
  );
});

it('packs one-byte pieces densely', () => {
  const queue = new ByteQueue();
  for (let i = 0; i < 100_000; i++) queue.push(Buffer.of(i & 255), 0, 1);
  expect(queue.length).toBe(100_000);
  let blocks = 0;
  while (queue.length > 0) {
    queue.shift(queue.length);
    blocks += 1;
  }
  expect(blocks).toBeLessThan(10);
});
