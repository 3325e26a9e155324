// One process at a time: the others wait until the holder of a lock file is done, and give up after a while.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type FileLock, takeLock } from '@tunnel/runtime';
import type { Io } from './io.ts';
import { fileFault } from './private-files.ts';

/** A holder asks the platform a few times; a request gives up after 10 s. */
const LOCK_PATIENCE_MS = 15_000;
const LOCK_LOOK_MS = 50;
/** Of a holder on another machine that shares the home folder. */
const FOREIGN_LOCK_STALE_MS = 60_000;

/** `file`: what is guarded. */
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
