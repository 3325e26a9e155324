// Follows the database: prepares it when it is first met, tells once when it goes away, once for each new reason, and once when it is back.
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { DatabaseAway } from './database-away.ts';

/** How often one that is away is looked for. */
const DATABASE_LOOK_MS = 1000;

export interface DatabaseWatchOptions {
  /** Tables, plans: what has to be there before anything is served. Done again from the start when it failed. */
  readonly prepare: () => Promise<void>;
  /** Called once, when it is. */
  readonly onPrepared?: () => void;
  /** Throws while the database does not answer. */
  readonly probe: () => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

// unmet -> ready <-> away. An unmet one has not been prepared yet.
type State = 'unmet' | 'ready' | 'away';

export class DatabaseWatch {
  readonly #options: DatabaseWatchOptions;
  #state: State = 'unmet';
  #timer: Timer | null = null;
  #looking: Promise<void> | null = null;
  #stopped = false;
  /** The last thing that was said of one that is away or cannot be used: not said every second. */
  #said = '';

  constructor(options: DatabaseWatchOptions) {
    this.#options = options;
  }

  /** It has been prepared; it may still be away right now. */
  get isPrepared(): boolean {
    return this.#state !== 'unmet';
  }

  /** Resolves when it is prepared, or is known to be away; then it is prepared when it appears. Throws what is wrong with it. */
  async start(): Promise<void> {
    try {
      await this.#prepare();
    } catch (error) {
      if (!(error instanceof DatabaseAway)) throw error;
      this.#said = reasonOf(error);
      this.#options.logger.warn({ reason: this.#said }, 'cannot reach the database; waiting');
      this.#lookSoon();
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  /** Somebody met it away. */
  noteAway(error: DatabaseAway): void {
    if (this.#state !== 'ready' || this.#stopped) return;
    this.#state = 'away';
    this.#said = reasonOf(error);
    this.#options.logger.warn({ reason: this.#said }, 'lost the connection to the database');
    this.#lookSoon();
  }

  #lookSoon(): void {
    if (this.#stopped) return;
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#looking = this.#look();
    }, DATABASE_LOOK_MS);
  }

  async #look(): Promise<void> {
    const { probe, logger } = this.#options;
    try {
      if (this.#state === 'unmet') await this.#prepare();
      else await probe();
      this.#state = 'ready';
      this.#said = '';
      logger.info({}, 'the database is available');
    } catch (error) {
      this.#sayOnce(error);
      this.#lookSoon();
    }
  }

  async #prepare(): Promise<void> {
    await this.#options.prepare();
    if (this.#stopped) return;
    this.#options.onPrepared?.();
    this.#state = 'ready';
  }

  #sayOnce(error: unknown): void {
    const reason = reasonOf(error);
    if (reason === this.#said) return;
    this.#said = reason;
    const { logger } = this.#options;
    if (error instanceof DatabaseAway)
      logger.warn({ reason }, 'the database is still not available, for a different reason');
    else logger.error({ err: error }, 'the database cannot be used');
  }
}

const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  // Of several addresses that were tried, each has its own.
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
};
