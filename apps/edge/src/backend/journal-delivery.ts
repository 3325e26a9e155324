// Brings the journal to the platform: every few seconds, and at once when somebody asks. One batch at a time, in order.
import { type Clock, type Logger, SerialRuns, type Timer } from '@tunnel/runtime';
import type { Journal } from './journal/journal.ts';
import { type Batch, lastRecordNumber } from './journal/journal-records.ts';
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

  /** For what should not wait. While the platform is away it waits all the same, for the next round. */
  deliverUnlessFailing(): Promise<boolean> {
    return this.#hasFailed ? Promise.resolve(false) : this.deliver();
  }

  /** false: not all that was written before this call is stored. Never rejects. */
  deliver(): Promise<boolean> {
    return this.#rounds.run();
  }

  async #run(): Promise<boolean> {
    try {
      await this.#options.journal.regain();
      // While the platform is away nothing more gets a number: without one it can still be summed up.
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
      logger.error(fields, 'the platform lost records; remaining records are sent under a new journal id');
      return journal.renumber(journalId);
    }
    if (last < first) throw new LinkFailure('refused', 'the platform stored no record of a batch and reported no gap');
    if (last > lastRecordNumber(batch))
      logger.error(fields, 'the platform has records of this journal from another edge');
    journal.acknowledged(journalId, last);
  }

  /** That it is away is said by the heartbeat; that it does not take what we say is said here, once. */
  #tell(error: unknown): void {
    const { message } = error as Error;
    if ((error instanceof LinkFailure && error.kind === 'away') || message === this.#refusal) return;
    this.#refusal = message;
    this.#options.logger.error({ reason: message }, 'platform rejected usage records; the records are kept');
  }
}
