// Random events at the queue of spans: bursts, waits, deliveries, failures and rejections in any order.
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { SPAN_QUEUE, SpanQueue } from './span-queue.rules.ts';

const { SPANS_MAX, BATCH_SPANS, ATTEMPTS_MAX } = SPAN_QUEUE;

type Event =
  | { readonly kind: 'add'; readonly count: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'take' }
  | { readonly kind: 'take-now' }
  | { readonly kind: 'done'; readonly result: 'delivered' | 'retry' | 'rejected'; readonly random: number };

const EVENT: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('add' as const), count: fc.integer({ min: 1, max: 900 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 70_000 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('take' as const) }) },
  fc.record({ kind: fc.constant('take-now' as const) }),
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('done' as const),
      result: fc.constantFrom('delivered' as const, 'retry' as const, 'rejected' as const),
      random: fc.double({ min: 0, max: 0.999, noNaN: true }),
    }),
  },
);

class Exporter {
  readonly queue = new SpanQueue<number>();
  readonly delivered: number[] = [];
  added = 0;
  nowMs = 0;
  batch: readonly number[] | null = null;
  readonly attempts = new Map<number, number>();

  apply(event: Event): void {
    const { queue } = this;
    if (event.kind === 'add') {
      for (let at = 0; at < event.count; at += 1) queue.add(this.added++, this.nowMs);
    } else if (event.kind === 'wait') this.nowMs += event.ms;
    else if (event.kind === 'done') {
      if (event.result === 'delivered') this.delivered.push(...(this.batch ?? []));
      queue.done(event.result, this.nowMs, event.random);
      this.batch = null;
    } else this.#take(event.kind === 'take' ? queue.take(this.nowMs) : queue.takeNow(this.nowMs));
  }

  #take(batch: readonly number[] | null): void {
    if (batch === null) return;
    // A single batch is on its way at a time.
    expect(this.batch).toBeNull();
    expect(batch.length).toBeGreaterThan(0);
    expect(batch.length).toBeLessThanOrEqual(BATCH_SPANS);
    this.batch = batch;
    const [first = -1] = batch;
    const attempts = (this.attempts.get(first) ?? 0) + 1;
    this.attempts.set(first, attempts);
    expect(attempts).toBeLessThanOrEqual(ATTEMPTS_MAX);
  }
}

it('never queues more than 2,048 spans, delivers a span at most once and in order, and loses none uncounted', () => {
  fc.assert(
    fc.property(fc.array(EVENT, { maxLength: 60 }), (events) => {
      const exporter = new Exporter();
      const { queue, delivered } = exporter;
      for (const event of events) {
        exporter.apply(event);
        expect(queue.size).toBeLessThanOrEqual(SPANS_MAX);
        expect(delivered.length + queue.dropped + queue.size).toBe(exporter.added);
        // A span waits for its batch at most 5 s, and for the pause after a failure at most a minute.
        const { dueMs } = queue;
        if (dueMs !== null) expect(dueMs - exporter.nowMs).toBeLessThanOrEqual(60_000);
        expect(dueMs === null).toBe(exporter.batch !== null || queue.size === 0);
      }
      expect(delivered).toEqual([...new Set(delivered)].sort((a, b) => a - b));
    }),
    { numRuns: 300 },
  );
});

it('delivers everything that was not dropped once the collector works again', () => {
  fc.assert(
    fc.property(fc.array(EVENT, { maxLength: 40 }), (events) => {
      const exporter = new Exporter();
      for (const event of events) exporter.apply(event);
      for (let round = 0; round < 10; round += 1) {
        exporter.apply({ kind: 'done', result: 'delivered', random: 0 });
        exporter.apply({ kind: 'wait', ms: 60_000 });
        exporter.apply({ kind: 'take' });
      }
      exporter.apply({ kind: 'done', result: 'delivered', random: 0 });
      expect(exporter.queue.size).toBe(0);
      expect(exporter.delivered.length + exporter.queue.dropped).toBe(exporter.added);
    }),
    { numRuns: 100 },
  );
});
