import { CORE_LIMITS, LimiterBudget } from '@tunnel/core';
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { EDGE_LIMITS } from '../limits.ts';
import { LimiterTables, type TokenNeed } from './limiter-tables.ts';

const needOf = (key: string, list: 'operator' | 'tunnel' = 'tunnel', index = 1): TokenNeed => ({
  ...{ kind: 'take-token', rule: { list, index, name: null, action: 'rate_limit' } },
  ...{ key, requests: 2, perSecs: 10, burst: 2 },
});

const isTaken = (event: ReturnType<LimiterTables['take']>): boolean =>
  event.kind === 'token-taken' && event.retryAfterSecs === null;

it('each route counts for itself, though their policies are equal; each rule, too', () => {
  const tables = new LimiterTables(new FakeClock());
  const [a, b] = [{}, {}];
  expect([1, 2, 3].map(() => isTaken(tables.take(needOf('x'), a, 'a')))).toEqual([true, true, false]);
  expect(isTaken(tables.take(needOf('x'), b, 'b'))).toBe(true);
  expect(isTaken(tables.take(needOf('x', 'tunnel', 2), a, 'a'))).toBe(true);
  expect(isTaken(tables.take(needOf('y'), a, 'a'))).toBe(true);
});

it('who is limited is told how long to wait', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  const served = {};
  for (let at = 0; at < 2; at += 1) tables.take(needOf('x'), served, 'a');
  expect(tables.take(needOf('x'), served, 'a')).toEqual({ kind: 'token-taken', retryAfterSecs: 5 });
  await clock.advance(5000);
  expect(isTaken(tables.take(needOf('x'), served, 'a'))).toBe(true);
});

it('a tunnel that brings another policy begins anew with its own limits, never with the operator’s', () => {
  const tables = new LimiterTables(new FakeClock());
  const [old, next] = [{}, {}];
  for (const list of ['operator', 'tunnel'] as const) {
    for (let at = 0; at < 2; at += 1) tables.take(needOf('x', list), old, 'shop');
  }
  tables.forget(old);
  expect(isTaken(tables.take(needOf('x'), next, 'shop'))).toBe(true);
  expect(isTaken(tables.take(needOf('x', 'operator'), next, 'shop'))).toBe(false);
  expect(isTaken(tables.take(needOf('x', 'operator'), next, 'other'))).toBe(true);
});

it('a flood at one tunnel takes the room of no other at a rule of the operator, and what is left of it goes', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  for (let at = 0; at <= CORE_LIMITS.LIMITER_KEYS_PER_RULE; at += 1) {
    for (let twice = 0; twice < 2; twice += 1) tables.take(needOf(`10.${at}`, 'operator'), {}, 'flooded');
  }
  // The last of them shared a bucket, and it is empty.
  expect(isTaken(tables.take(needOf('somebody', 'operator'), {}, 'flooded'))).toBe(false);
  for (const person of ['ann', 'bo', 'cy']) {
    expect(isTaken(tables.take(needOf(person, 'operator'), {}, 'shop'))).toBe(true);
  }
  await clock.advance(3 * EDGE_LIMITS.LIMITER_SWEEP_MS);
  expect(tables.keys).toBe(0);
  tables.close();
});

it('what is forgotten, and what is idle, holds no keys', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  const served = {};
  for (let at = 0; at < 100; at += 1) tables.take(needOf(`x${at}`), served, 'a');
  expect(tables.keys).toBe(100);
  tables.forget(served);
  expect(tables.keys).toBe(0);
  for (let at = 0; at < 100; at += 1) tables.take(needOf(`x${at}`), served, 'a');
  await clock.advance(EDGE_LIMITS.LIMITER_SWEEP_MS);
  expect(tables.keys).toBe(0);
  tables.close();
  expect(clock.pendingTimers).toBe(0);
});

it('on an edge that is full a limit is not begun anew with each sweep', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock, new LimiterBudget(1));
  const slow = (key: string): TokenNeed => ({ ...needOf(key), perSecs: 3600 });
  const [other, served] = [{}, {}];
  // All the room there is: from here on keys share the bucket of their rule.
  tables.take(slow('x'), other, 'a');
  expect([1, 2, 3].map((at) => isTaken(tables.take(slow(`y${at}`), served, 'b')))).toEqual([true, true, false]);
  await clock.advance(2 * EDGE_LIMITS.LIMITER_SWEEP_MS);
  expect(isTaken(tables.take(slow('y4'), served, 'b'))).toBe(false);
  tables.close();
});
