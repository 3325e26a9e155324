// Waiting without sleeping: an assertion is tried until it passes; the last failure is what the test reports.
import { setTimeout as pause } from 'node:timers/promises';

export interface EventuallyOptions {
  readonly timeoutMs?: number;
  readonly intervalMs?: number;
}

/** Returns what `check` returned when it first did not throw. */
export const eventually = async <T>(check: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> => {
  const { timeoutMs = 5000, intervalMs = 20 } = options;
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
