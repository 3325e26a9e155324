// The memory used by the start is released once, and no code gets access to gc() afterwards.

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
