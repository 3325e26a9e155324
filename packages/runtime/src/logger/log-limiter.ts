// Limits log lines that strangers can cause: one per second and key, with the number of suppressed lines. A flood of events must not become
// a flood of lines.
import { SlidingWindow } from '@tunnel/rules/rate';
import type { Logger } from './logger.ts';

const SECOND = { perWindow: 1, windowMs: 1000 };
/** During a lasting flood one second per minute has no line, so that every minute has fewer than sixty. */
const MINUTE = { perWindow: 59, windowMs: 60_000, togetherMs: 60_000 };
/**
 * Maximum number of keys. Keys contain codes and accounts, so strangers can create many; the key with the oldest last line is forgotten
 * first.
 */
const KEYS_MAX = 4096;

type Level = 'debug' | 'info' | 'warn' | 'error';

/** Counters of log lines with the same key. */
class Lines {
  readonly second = new SlidingWindow(SECOND);
  readonly minute = new SlidingWindow(MINUTE);
  suppressed = 0;
}

export class LogLimiter {
  readonly #logger: Logger;
  readonly #monotonic: () => number;
  /** Line counters by key, ordered by last line. */
  readonly #lines = new Map<string, Lines>();

  constructor(logger: Logger, monotonic: () => number) {
    this.#logger = logger;
    this.#monotonic = monotonic;
  }

  /** `key` is the code of the event, with the account if known. `count` is the number of simultaneous events. */
  log(level: Level, key: string, fields: object, message: string, count = 1): void {
    const now = this.#monotonic();
    const lines = this.#lines.get(key) ?? new Lines();
    if (!lines.second.hasRoom(now) || !lines.minute.hasRoom(now)) {
      lines.suppressed += count;
      return;
    }
    lines.second.record(now);
    lines.minute.record(now);
    const suppressed = lines.suppressed + count - 1;
    lines.suppressed = 0;
    // Moves the key to the end of the map, because it now has the latest log line.
    this.#lines.delete(key);
    this.#lines.set(key, lines);
    if (this.#lines.size > KEYS_MAX) this.#forgetOldest();
    this.#logger[level](suppressed > 0 ? { ...fields, suppressed } : fields, message);
  }

  #forgetOldest(): void {
    for (const key of this.#lines.keys()) {
      this.#lines.delete(key);
      return;
    }
  }
}
