import { expect, it } from 'vitest';
import { type ReadBlock, readBuffers, SOCKET_BULK_BUFFERS_MAX } from './read-buffers.ts';

it('the pool lends at most its bound of large buffers, and lends returned buffers again', () => {
  const before = readBuffers.borrowed;
  const blocks: ReadBlock[] = [];
  for (let block = readBuffers.borrow(); block !== null; block = readBuffers.borrow()) blocks.push(block);
  expect(before + blocks.length).toBe(SOCKET_BULK_BUFFERS_MAX);
  const [one] = blocks.splice(-1);
  readBuffers.giveBack(one!, true);
  const again = readBuffers.borrow();
  expect(again).toBe(one);
  for (const block of [...blocks, again!]) readBuffers.giveBack(block, true);
  expect(readBuffers.borrowed).toBe(before);
});
