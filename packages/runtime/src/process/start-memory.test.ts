// The memory used by the start is released, and no code gets access to gc() afterwards.

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

it('releaseStartMemory collects again if the process is idle', async () => {
  const atStart = new WeakRef({ of: 'the start' });
  releaseStartMemory({ atRestMs: 1000, busyShare: Number.POSITIVE_INFINITY });
  await eventually(() => expect(atStart.deref()).toBeUndefined());
  const later = new WeakRef({ of: 'the time after' });
  await eventually(() => expect(later.deref()).toBeUndefined());
});
