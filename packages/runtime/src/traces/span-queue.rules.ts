// Queue of spans between requests and the collector: batches, retries, and dropped spans. A state machine without clock and sockets: the
// exporter passes the time and a random number, and reports the result of each batch.

import { afterFailure, type BackoffRules, type BackoffState, CALM } from '@tunnel/rules/rate';

export const SPAN_QUEUE = {
  /** @limit operator: Spans of traces that wait for the collector, per process | further spans are dropped and counted */
  SPANS_MAX: 2048,
  /** Maximum spans per request to the collector. */
  BATCH_SPANS: 512,
  /** Maximum time before a batch with fewer spans is sent. */
  BATCH_WAIT_MS: 5000,
  /** Maximum attempts to send a batch. Then its spans are dropped, so that newer spans are not kept out for the length of an outage. */
  ATTEMPTS_MAX: 5,
} as const;

const BACKOFF: BackoffRules = { minMs: 1000, maxMs: 60_000, stableAfterMs: 0 };

/** Result of a batch. `retry`: the collector may accept the same batch later. `rejected`: it never will. */
export type BatchResult = 'delivered' | 'retry' | 'rejected';

/** The queue. `Item` is a span in the form in which it is sent. */
export class SpanQueue<Item> {
  /** Number of spans that were dropped: the queue was full, or the collector did not accept them. */
  dropped = 0;
  #waiting: Item[] = [];
  /** Time since which the first waiting span waits. Valid while spans wait. */
  #waitingSinceMs = 0;
  /** The batch that is being sent, or waits for its next attempt. Null without such a batch. */
  #batch: readonly Item[] | null = null;
  #isSending = false;
  #attempts = 0;
  #backoff: BackoffState = CALM;
  /** Time before which nothing is sent, because the collector has failed. */
  #pausedUntilMs = 0;

  /** Number of spans that wait or are being sent. */
  get size(): number {
    return this.#waiting.length + (this.#batch?.length ?? 0);
  }

  /** Adds a span. Drops and counts the span if the queue is full. */
  add(item: Item, nowMs: number): void {
    if (this.size >= SPAN_QUEUE.SPANS_MAX) {
      this.dropped += 1;
      return;
    }
    if (this.#waiting.length === 0) this.#waitingSinceMs = nowMs;
    this.#waiting.push(item);
  }

  /** Time at which the next batch can be sent. Null while a batch is being sent, or if no span waits. */
  get dueMs(): number | null {
    if (this.#isSending || this.size === 0) return null;
    const isReady = this.#batch !== null || this.#waiting.length >= SPAN_QUEUE.BATCH_SPANS;
    const readyMs = isReady ? this.#pausedUntilMs : this.#waitingSinceMs + SPAN_QUEUE.BATCH_WAIT_MS;
    return Math.max(readyMs, this.#pausedUntilMs);
  }

  /** Takes the batch that is due, or null. The caller must report the result of the batch. */
  take(nowMs: number): readonly Item[] | null {
    const { dueMs } = this;
    return dueMs === null || nowMs < dueMs ? null : this.takeNow(nowMs);
  }

  /** Takes the next batch before its time, for the last attempt at shutdown. */
  takeNow(nowMs: number): readonly Item[] | null {
    if (this.#isSending || this.size === 0) return null;
    if (this.#batch === null) {
      this.#batch = this.#waiting.splice(0, SPAN_QUEUE.BATCH_SPANS);
      this.#waitingSinceMs = nowMs;
      this.#attempts = 0;
    }
    this.#isSending = true;
    this.#attempts += 1;
    return this.#batch;
  }

  /** Reports the result of the batch taken last. `random` is in [0, 1). */
  done(result: BatchResult, nowMs: number, random: number): void {
    const batch = this.#batch;
    if (batch === null || !this.#isSending) return;
    this.#isSending = false;
    if (result === 'delivered') {
      this.#batch = null;
      this.#backoff = CALM;
      return;
    }
    const { state, delayMs } = afterFailure(this.#backoff, nowMs, random, BACKOFF);
    this.#backoff = state;
    this.#pausedUntilMs = nowMs + delayMs;
    if (result === 'rejected' || this.#attempts >= SPAN_QUEUE.ATTEMPTS_MAX) {
      this.#batch = null;
      this.dropped += batch.length;
    }
  }

  /** Drops and counts everything that is left, at the end of the process. */
  dropAll(): void {
    this.dropped += this.size;
    this.#waiting = [];
    this.#batch = null;
    this.#isSending = false;
  }
}
