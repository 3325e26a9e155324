// Watches the database: prepares it on first contact, and logs an outage, every new reason of an outage, and the recovery, each only
// once.
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { DatabaseAway } from './database-away.ts';

/** Interval between probes of an unavailable database. */
const DATABASE_LOOK_MS = 1000;

export interface DatabaseWatchOptions {
  /** Creates tables and plans, which must exist before requests are served. Repeated from the start after a failure. */
  readonly prepare: () => Promise<void>;
  /** Called once, when the preparation has succeeded. */
  readonly onPrepared?: () => void;
  /** Checks whether the database responds. Rejects if the database does not respond. */
  readonly probe: () => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

// State transitions: unmet -> ready <-> away. An unmet database has not been prepared yet.
type State = 'unmet' | 'ready' | 'away';

export class DatabaseWatch {
  readonly #options: DatabaseWatchOptions;
  #state: State = 'unmet';
  #timer: Timer | null = null;
  #looking: Promise<void> | null = null;
  #stopped = false;
  /** Last logged reason of an outage, to avoid logging the same reason every second. */
  #said = '';

  constructor(options: DatabaseWatchOptions) {
    this.#options = options;
  }

  /** True if the database has been prepared. The database may still be unavailable right now. */
  get isPrepared(): boolean {
    return this.#state !== 'unmet';
  }

  /**
   * Prepares the database. Resolves also if the database is unavailable; the preparation then follows when the database appears. Rejects
   * with other errors, such as a failed migration.
   */
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

  /** Reports that a query found the database unavailable. */
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
  // With several tried addresses, every address has a separate error.
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
};
