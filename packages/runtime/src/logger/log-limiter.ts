// Lines that strangers can cause: one a second for each key, with the number of those that were left out. A flood of events must not become a flood of lines.
import type { Logger } from './logger.ts';

const INTERVAL_MS = 1000;
/** Of a flood that goes on: one second of a minute has none, so that whichever minute one looks at has fewer than sixty. */
const LINES_PER_MINUTE = 59;
const MINUTE_MS = 60_000;
/** Keys hold codes and accounts, so that there are as many as somebody can make; the one that has waited longest is forgotten first. */
const KEYS_MAX = 4096;

type Level = 'debug' | 'info' | 'warn' | 'error';

export class LogLimiter {
  readonly #logger: Logger;
  readonly #monotonic: () => number;
  readonly #last = new Map<string, { at: number; suppressed: number; minuteAt: number; lines: number }>();

  constructor(logger: Logger, monotonic: () => number) {
    this.#logger = logger;
    this.#monotonic = monotonic;
  }

  /** `key` is the code of what happened, and the account where one is known; `count`: how many happened at once. */
  log(level: Level, key: string, fields: object, message: string, count = 1): void {
    const now = this.#monotonic();
    const last = this.#last.get(key);
    const isSameMinute = last !== undefined && now - last.minuteAt < MINUTE_MS;
    if (last !== undefined && (now - last.at < INTERVAL_MS || (isSameMinute && last.lines >= LINES_PER_MINUTE))) {
      last.suppressed += count;
      return;
    }
    const suppressed = (last?.suppressed ?? 0) + count - 1;
    // Deleted first: the order of the map is that of the last lines.
    this.#last.delete(key);
    const minute = isSameMinute ? { minuteAt: last.minuteAt, lines: last.lines + 1 } : { minuteAt: now, lines: 1 };
    this.#last.set(key, { at: now, suppressed: 0, ...minute });
    if (this.#last.size > KEYS_MAX) this.#forgetOldest();
    this.#logger[level](suppressed > 0 ? { ...fields, suppressed } : fields, message);
  }

  #forgetOldest(): void {
    for (const key of this.#last.keys()) {
      this.#last.delete(key);
      return;
    }
  }
}
