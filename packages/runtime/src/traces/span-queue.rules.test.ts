import { expect, it } from 'vitest';
import { SPAN_QUEUE, SpanQueue } from './span-queue.rules.ts';

const { SPANS_MAX, BATCH_SPANS, BATCH_WAIT_MS, ATTEMPTS_MAX } = SPAN_QUEUE;
const HALF = 0.5;

const filled = (count: number, nowMs = 0): SpanQueue<number> => {
  const queue = new SpanQueue<number>();
  for (let span = 0; span < count; span += 1) queue.add(span, nowMs);
  return queue;
};

it('sends nothing while no span waits', () => {
  const queue = filled(0);
  expect([queue.dueMs, queue.take(1e9), queue.takeNow(1e9)]).toEqual([null, null, null]);
});

it('sends a single span after 5 s, counted from the first span', () => {
  const queue = filled(1, 100);
  queue.add(1, 4000);
  expect(queue.dueMs).toBe(100 + BATCH_WAIT_MS);
  expect(queue.take(99 + BATCH_WAIT_MS)).toBeNull();
  expect(queue.take(100 + BATCH_WAIT_MS)).toEqual([0, 1]);
});

it('sends 512 spans at once, and the rest in the next batch', () => {
  const queue = filled(BATCH_SPANS + 1);
  expect(queue.take(0)).toHaveLength(BATCH_SPANS);
  expect([queue.dueMs, queue.take(1e9)]).toEqual([null, null]);
  queue.done('delivered', 10, HALF);
  expect(queue.take(BATCH_WAIT_MS)).toEqual([BATCH_SPANS]);
});

it('drops and counts spans beyond 2,048, including the batch that is being sent', () => {
  const queue = filled(SPANS_MAX);
  expect(queue.take(0)).toHaveLength(BATCH_SPANS);
  queue.add(-1, 0);
  expect([queue.size, queue.dropped]).toEqual([SPANS_MAX, 1]);
  queue.done('delivered', 0, HALF);
  queue.add(-1, 0);
  expect([queue.size, queue.dropped]).toEqual([SPANS_MAX - BATCH_SPANS + 1, 1]);
});

it('repeats a batch after a pause that grows, and drops it after the last attempt', () => {
  const queue = filled(BATCH_SPANS + 1);
  const pauses: number[] = [];
  let nowMs = 0;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    expect(queue.take(nowMs)?.[0]).toBe(0);
    // Each attempt times out.
    nowMs += 10_000;
    queue.done('retry', nowMs, HALF);
    const dueMs = queue.dueMs ?? 0;
    pauses.push(dueMs - nowMs);
    expect(queue.take(dueMs - 1)).toBeNull();
    nowMs = dueMs;
  }
  expect(queue.dropped).toBe(BATCH_SPANS);
  expect(queue.take(nowMs)).toEqual([BATCH_SPANS]);
  expect(pauses[0]).toBeLessThan(1000);
  expect(pauses.at(-1)).toBeGreaterThan(pauses[0] ?? 0);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(60_000);
});

it('drops a rejected batch at once, and pauses before the next', () => {
  const queue = filled(2 * BATCH_SPANS);
  queue.take(0);
  queue.done('rejected', 0, HALF);
  expect([queue.dropped, queue.size]).toEqual([BATCH_SPANS, BATCH_SPANS]);
  expect(queue.dueMs).toBeGreaterThan(0);
});

it('forgets earlier failures after a delivery', () => {
  const queue = filled(2 * BATCH_SPANS);
  for (let at = 0; at < 3; at += 1) {
    queue.take(queue.dueMs ?? 0);
    queue.done('retry', 1e6, HALF);
  }
  queue.take(queue.dueMs ?? 0);
  queue.done('delivered', 2e6, HALF);
  queue.take(3e6);
  queue.done('retry', 3e6, HALF);
  expect((queue.dueMs ?? 0) - 3e6).toBeLessThan(1000);
});

it('takes the rest before its time at shutdown, and counts what is left as dropped', () => {
  const queue = filled(3);
  expect(queue.takeNow(0)).toEqual([0, 1, 2]);
  queue.done('retry', 0, HALF);
  queue.dropAll();
  expect([queue.size, queue.dropped, queue.dueMs]).toEqual([0, 3, null]);
});
