import { expect, it } from 'vitest';
import { MUX_LIMITS } from '../limits.ts';
import { type ReadBlock, readBuffers } from './read-buffers.ts';

it('lends no more large buffers than its bound, and lends again what was given back', () => {
  const before = readBuffers.borrowed;
  const blocks: ReadBlock[] = [];
  for (let block = readBuffers.borrow(); block !== null; block = readBuffers.borrow()) blocks.push(block);
  expect(before + blocks.length).toBe(MUX_LIMITS.SOCKET_BULK_BUFFERS_MAX);
  const [one] = blocks.splice(-1);
  readBuffers.giveBack(one!, true);
  const again = readBuffers.borrow();
  expect(again).toBe(one);
  for (const block of [...blocks, again!]) readBuffers.giveBack(block, true);
  expect(readBuffers.borrowed).toBe(before);
});
