// A lock file for one process at a time. Other processes wait for the holder, and give up after a while.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type FileLock, takeLock } from '@tunnel/runtime';
import type { Io } from './io.ts';
import { fileFault } from './private-files.ts';

/** Maximum wait for the lock. A holder sends a few requests to the platform, and a request times out after 10 s. */
const LOCK_PATIENCE_MS = 15_000;
const LOCK_LOOK_MS = 50;
/** Age from which a lock held on another computer, which shares the home folder, counts as abandoned. */
const FOREIGN_LOCK_STALE_MS = 60_000;

/** Runs an action while no other process holds the lock. `file` is the protected file. */
export const withSingleInstanceLock = async <T>(
  file: string,
  { clock }: Pick<Io, 'clock'>,
  action: () => Promise<T>,
): Promise<T> => {
  const lockFile = `${file}.lock`;
  const giveUpAt = clock.monotonic() + LOCK_PATIENCE_MS;
  let lock = take(lockFile);
  while (lock === null) {
    if (clock.monotonic() >= giveUpAt) {
      throw new Fault('CLIENT_FILE', { file: lockFile, reason: 'another tunnel process holds the lock' });
    }
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, LOCK_LOOK_MS));
    lock = take(lockFile);
  }
  try {
    return await action();
  } finally {
    lock.release();
  }
};

const take = (file: string): FileLock | null => {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    return takeLock(file, FOREIGN_LOCK_STALE_MS);
  } catch (error) {
    throw fileFault(file, error);
  }
};
