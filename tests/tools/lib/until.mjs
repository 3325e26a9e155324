// Waits for a condition with a time limit.
import { setTimeout as pause } from 'node:timers/promises';

/** Polls `look` and returns its first result other than false, undefined or null. */
export async function until(what, look, { timeoutMs = 15_000, everyMs = 50 } = {}) {
  const giveUpAt = Date.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (seen !== false && seen !== undefined && seen !== null) return seen;
    if (Date.now() > giveUpAt) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
    await pause(everyMs);
  }
}
