// Waiting for something to become true, with an end to the patience.
import { setTimeout as pause } from 'node:timers/promises';

/** What `look` gave when it was first neither false nor undefined nor null. */
export async function until(what, look, { timeoutMs = 15_000, everyMs = 50 } = {}) {
  const giveUpAt = Date.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (seen !== false && seen !== undefined && seen !== null) return seen;
    if (Date.now() > giveUpAt) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
    await pause(everyMs);
  }
}
