// The byte queue returns its bytes in order, however pushes and shifts split them.
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { ByteQueue, giveBackBlock, type QueueBlock } from './byte-queue.ts';

it('the byte queue keeps order and length over any pushes and shifts', () => {
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

it('the byte queue packs one-byte pieces densely', () => {
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

it('reused blocks of the byte queue contain only the newly pushed bytes', () => {
  const filled = (value: number) => Buffer.alloc(150_000, value);
  const rounds = (count: number) =>
    Array.from({ length: count }, (_, round) => {
      const queue = new ByteQueue();
      queue.push(filled(round), 0, 150_000);
      const blocks: QueueBlock[] = [];
      for (let block = queue.shiftBlock(); block !== undefined; block = queue.shiftBlock()) blocks.push(block);
      expect(queue.length).toBe(0);
      const joined = Buffer.concat(blocks.map(({ bytes, start, end }) => bytes.subarray(start, end)));
      expect(joined.equals(filled(round))).toBe(true);
      for (const block of blocks) giveBackBlock(block);
      return blocks.map(({ bytes }) => bytes);
    });
  const used = new Set(rounds(20).flat());
  // A round uses two large blocks and one small block; the large blocks are reused in all rounds.
  expect(used.size).toBeLessThan(20 + 4);
});
