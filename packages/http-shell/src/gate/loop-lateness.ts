// How late the event loop runs its timers. Measured only while somebody asks: an idle process has no timer for it.
import type { Clock } from '@tunnel/runtime';

const MEASURE_MS = 10;
/** A measurement older than this says nothing any more. */
const FRESH_MS = 1000;

export const latenessOf = (clock: Clock): (() => number) => {
  let dueMs: number | null = null;
  let lateMs = 0;
  let measuredMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = clock.monotonic();
    const last = nowMs - measuredMs < FRESH_MS ? lateMs : 0;
    // A timer that is due and has not run yet tells more than the last that ran.
    if (dueMs !== null) return Math.max(last, nowMs - dueMs);
    const due = nowMs + MEASURE_MS;
    dueMs = due;
    const timer = clock.setTimeout(() => {
      measuredMs = clock.monotonic();
      lateMs = Math.max(0, measuredMs - due);
      dueMs = null;
    }, MEASURE_MS);
    timer.unref?.();
    return last;
  };
};
