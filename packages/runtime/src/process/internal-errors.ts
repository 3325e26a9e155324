// Mistakes of ours that were caught at the rim: counted by the place that caught them, one line with the stack a second for each.
import { LogLimiter } from '../logger/log-limiter.ts';
import type { Logger } from '../logger/logger.ts';

export class InternalErrors {
  readonly #log: LogLimiter;
  readonly #counts = new Map<string, number>();

  constructor(logger: Logger, monotonic: () => number) {
    this.#log = new LogLimiter(logger, monotonic);
  }

  /** By place. The places are words in our code, so there are only so many. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  readonly report = (error: unknown, where: string): void => {
    this.#counts.set(where, (this.#counts.get(where) ?? 0) + 1);
    this.#log.log('error', where, { where, err: error }, 'connection closed after an internal error');
  };
}

/**
 * A change of state that many share (registry, groups, the table of sessions) happens whole, or the process ends: after half of one
 * nobody knows what is true. Thrown in a turn of its own, where no guard of one connection takes it for that connection's.
 */
export const wholeOrEnd = <T>(change: () => T): T => {
  try {
    return change();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
    throw error;
  }
};
