// Internal errors caught at the outer boundary: counted by place, with one log line with stack per second and place.
import { LogLimiter } from '../logger/log-limiter.ts';
import type { Logger } from '../logger/logger.ts';

export class InternalErrors {
  readonly #log: LogLimiter;
  readonly #counts = new Map<string, number>();

  constructor(logger: Logger, monotonic: () => number) {
    this.#log = new LogLimiter(logger, monotonic);
  }

  /** Number of internal errors by place. Places are literals in the code, so their number is limited. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  readonly report = (error: unknown, where: string): void => {
    this.#counts.set(where, (this.#counts.get(where) ?? 0) + 1);
    this.#log.log('error', where, { where, err: error }, 'connection closed after an internal error');
  };
}

/**
 * Runs a change of shared state (registry, groups, session table) completely or ends the process, because the state is undefined after a
 * partial change. The error is thrown in a separate turn, where no handler of a connection catches it.
 */
export const crashOnThrow = <T>(change: () => T): T => {
  try {
    return change();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
    throw error;
  }
};
