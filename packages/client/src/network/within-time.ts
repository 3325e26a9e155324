// Time limits by a clock, as an abort signal for the limited work.
import type { Clock } from '@tunnel/runtime';

/** Calls `take` with a signal that aborts after `ms` with `reason`. The timer ends with the work. */
export const withinTime = async <T>(
  clock: Clock,
  ms: number,
  reason: Error,
  take: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  const late = new AbortController();
  const timer = clock.setTimeout(() => late.abort(reason), ms);
  try {
    return await take(late.signal);
  } finally {
    timer.cancel();
  }
};
