// What a start has used is given back once, and nobody gets a way to ask for it again.

import { runInNewContext } from 'node:vm';
import { eventually } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { releaseStartMemory } from './start-memory.ts';

it('releaseStartMemory collects unused memory and does not expose gc()', async () => {
  const used = new WeakRef({ of: 'the start' });
  releaseStartMemory();
  await eventually(() => expect(used.deref()).toBeUndefined());
  expect(runInNewContext('typeof gc')).toBe('undefined');
});
