// Delivers the journal to the platform every few seconds, and at once when requested. Sends a single batch at a time, in order.
import { type Clock, type Logger, SerialRuns, type Timer } from '@tunnel/runtime';
import type { Journal } from './journal/journal.ts';
import type { Batch } from './journal/journal-records.ts';
import { LinkFailure, type PlatformLink } from './platform-link.ts';

export interface JournalDeliveryOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly journal: Journal;
  readonly link: Pick<PlatformLink, 'sendRecords'>;
  readonly runId: string;
  readonly everyMs: number;
}

export class JournalDelivery {
  readonly #options: JournalDeliveryOptions;
  readonly #rounds = new SerialRuns(() => this.#run());
  #ticking: Timer | undefined;
  #hasFailed = false;
  #refusal = '';

  constructor(options: JournalDeliveryOptions) {
    this.#options = options;
  }

  start(): void {
    this.#ticking = this.#options.clock.setInterval(() => void this.deliver(), this.#options.everyMs);
  }

  stop(): void {
    this.#ticking?.cancel();
  }

  /**
   * Delivers urgent records at once. If the last delivery failed, resolves to false, and the records wait for the next regular delivery.
   */
  deliverUnlessFailing(): Promise<boolean> {
    return this.#hasFailed ? Promise.resolve(false) : this.deliver();
  }

  /** Delivers all records. Resolves to true if the platform has stored every record written before the call. Never rejects. */
  deliver(): Promise<boolean> {
    return this.#rounds.run();
  }

  async #run(): Promise<boolean> {
    try {
      await this.#options.journal.regain();
      // Numbered records are sent first. If the platform is unreachable, no further records are numbered, because usage without a number
      // can still be summed up.
      await this.#sendAll();
      await this.#options.journal.seal();
      await this.#sendAll();
      this.#hasFailed = false;
      this.#refusal = '';
    } catch (error) {
      this.#hasFailed = true;
      this.#tell(error);
    }
    return !this.#hasFailed;
  }

  async #sendAll(): Promise<void> {
    const { journal, link, runId } = this.#options;
    for (let batch = journal.batch; batch !== null; batch = journal.batch) {
      const { journalId, first, records } = batch;
      const last = await link.sendRecords({
        run_id: runId,
        journal_id: journalId,
        first,
        records: [...records],
      });
      await this.#settle(batch, last);
    }
  }

  async #settle(batch: Batch, last: number): Promise<void> {
    const { journal, logger } = this.#options;
    const { journalId, first } = batch;
    const fields = { journal_id: journalId, first, last_record: last };
    if (last < first - 1) {
      const missing = await journal.sendAgain(journalId, last + 1, first - 1);
      if (missing === 0) return logger.warn(fields, 'the platform lost records; sending them again');
      logger.error({ ...fields, missing }, 'the platform lost records; the rest is sent under a new journal id');
      return journal.renumber(journalId);
    }
    if (last < first) throw new LinkFailure('refused', 'the platform stored no record of a batch and reported no gap');
    // The platform may have stored later batches too. An acknowledgment can reach the journal file after the next batch was sent, so a
    // killed run may have delivered batches that are still waiting in its file.
    if (last > journal.lastNumber(journalId))
      logger.error(fields, 'the platform has records of this journal from another edge');
    journal.acknowledged(journalId, last);
  }

  /** Logs a failed delivery. An unreachable platform is logged by the heartbeat instead; the same rejection is logged only once. */
  #tell(error: unknown): void {
    const { message } = error as Error;
    if ((error instanceof LinkFailure && error.kind === 'away') || message === this.#refusal) return;
    this.#refusal = message;
    this.#options.logger.error({ reason: message }, 'platform rejected usage records; the records are kept');
  }
}
