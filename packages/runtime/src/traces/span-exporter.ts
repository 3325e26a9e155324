// Delivers spans to the collector in the background: keeps the queue, waits for the next batch, and sends a single batch at a time.

import type { Clock, Timer } from '../clock.ts';
import type { Logger } from '../logger/logger.ts';
import { batchJson, type SpanSource } from './otlp-json.rules.ts';
import type { OtlpSender } from './otlp-sender.ts';
import { SpanQueue } from './span-queue.rules.ts';

/** Maximum time for delivering the remaining spans at shutdown. */
const LAST_SPANS_MS = 2000;

export interface SpanExporterOptions {
  readonly source: SpanSource;
  readonly send: OtlpSender;
  /** Host of the collector, for the log. */
  readonly host: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns uniform random numbers in [0, 1), for the pauses between retries. */
  readonly random: () => number;
}

export class SpanExporter {
  readonly #options: SpanExporterOptions;
  readonly #queue = new SpanQueue<string>();
  readonly #closed = new AbortController();
  #timer: Timer | null = null;
  /** Time for which the timer is set. Valid while there is a timer. */
  #dueMs = 0;
  /** The batch on its way to the collector. */
  #sending: Promise<unknown> = Promise.resolve();
  #isStopping = false;
  /** Whether the last batch failed. The log reports only the first failure, and the recovery. */
  #isFailing = false;

  constructor(options: SpanExporterOptions) {
    this.#options = options;
  }

  /** Number of spans that were not delivered: the queue was full, or the collector did not accept them. */
  get dropped(): number {
    return this.#queue.dropped;
  }

  /** Number of spans that wait or are being sent. */
  get queued(): number {
    return this.#queue.size;
  }

  /** Adds a span, as text made by spanJson. Never sends within the call, because the caller is answering a visitor. */
  add(span: string): void {
    if (this.#isStopping) return;
    this.#queue.add(span, this.#now());
    this.#schedule();
  }

  /** Makes a last attempt to deliver the remaining spans. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#timer?.cancel();
    const late = this.#options.clock.setTimeout(() => this.#closed.abort(), LAST_SPANS_MS);
    await this.#sending;
    while (!this.#isFailing && (await this.#send(this.#queue.takeNow(this.#now()))));
    late.cancel();
    this.#queue.dropAll();
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }

  /** Waits until the next batch is due. A full batch that is due earlier than the batch waited for replaces the wait. */
  #schedule(): void {
    const { dueMs } = this.#queue;
    if (dueMs === null || this.#isStopping) return;
    if (this.#timer !== null && dueMs >= this.#dueMs) return;
    this.#timer?.cancel();
    this.#dueMs = dueMs;
    this.#timer = this.#options.clock.setTimeout(() => this.#onDue(), Math.max(0, dueMs - this.#now()));
    this.#timer.unref?.();
  }

  #onDue(): void {
    this.#timer = null;
    this.#sending = this.#send(this.#queue.take(this.#now())).then(() => this.#schedule());
  }

  /** Sends a batch and reports its result to the queue. Returns false without a batch. */
  async #send(batch: readonly string[] | null): Promise<boolean> {
    if (batch === null) return false;
    const { send, source, random } = this.#options;
    const { result, reason } = await send(Buffer.from(batchJson(source, batch)), this.#closed.signal);
    this.#queue.done(result, this.#now(), random());
    this.#report(result === 'delivered' ? null : reason);
    return true;
  }

  #report(reason: string | null): void {
    const { logger, host } = this.#options;
    if (reason === null && this.#isFailing) logger.info({ collector: host }, 'traces are delivered again');
    if (reason !== null && !this.#isFailing) {
      logger.warn(
        { collector: host, reason },
        'traces cannot be delivered; spans are kept up to a limit, then dropped',
      );
    }
    this.#isFailing = reason !== null;
  }
}
