// Waiting without sleeping: an assertion is tried until it passes; the last failure is what the test reports.
import { setTimeout as pause } from 'node:timers/promises';

export interface EventuallyOptions {
  readonly timeoutMs?: number;
  readonly intervalMs?: number;
}

/** A busy machine is slow; only a test that waits in vain takes all of it. */
const PATIENCE_MS = 15_000;

/** Returns what `check` returned when it first did not throw. */
export const eventually = async <T>(check: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> => {
  const { timeoutMs = PATIENCE_MS, intervalMs = 20 } = options;
  const giveUpAt = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() >= giveUpAt) throw error;
    }
    await pause(intervalMs);
  }
};
