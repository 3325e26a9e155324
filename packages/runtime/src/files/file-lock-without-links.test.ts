import type * as fs from 'node:fs';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@tunnel/testkit';
import { expect, it, vi } from 'vitest';
import { lockHolder, takeLock } from './file-lock.ts';

vi.mock('node:fs', async (original) => ({
  ...(await original<typeof fs>()),
  linkSync: () => {
    throw Object.assign(new Error('operation not permitted, link'), { code: 'EPERM' });
  },
}));

it('a file lock on a file system without hard links has one holder, and is taken over from a process that is gone', async () => {
  const directory = await temporaryDirectory();
  try {
    const path = join(directory.path, 'lock.json');
    const lock = takeLock(path);
    expect([lock === null, takeLock(path), lockHolder(path)]).toEqual([false, null, process.pid]);
    lock?.release();
    expect(existsSync(path)).toBe(false);
    writeFileSync(path, 'cut');
    expect(takeLock(path)).not.toBeNull();
    expect(readdirSync(directory.path)).toEqual(['lock.json']);
  } finally {
    await directory.close();
  }
});
