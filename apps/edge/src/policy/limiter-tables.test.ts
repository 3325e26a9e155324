import { CORE_LIMITS, LimiterBudget } from '@tunnel/core';
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { EDGE_LIMITS } from '../limits.ts';
import { type LimitedRoute, LimiterTables, type TokenNeed } from './limiter-tables.ts';

const needOf = (key: string, list: 'operator' | 'tunnel' = 'tunnel', index = 1): TokenNeed => ({
  ...{ kind: 'take-token', rule: { list, index, name: null, action: 'rate_limit' } },
  ...{ key, requests: 2, perSecs: 10, burst: 2 },
});

const of = (routeKey: string, owner = 'somebody'): LimitedRoute => ({ routeKey, owner });

const isTaken = (event: ReturnType<LimiterTables['take']>): boolean =>
  event.kind === 'token-taken' && event.retryAfterSecs === null;

it('each route counts for itself, though their policies are equal; each rule, too', () => {
  const tables = new LimiterTables(new FakeClock());
  const [a, b] = [{}, {}];
  expect([1, 2, 3].map(() => isTaken(tables.take(needOf('x'), a, of('a'))))).toEqual([true, true, false]);
  expect(isTaken(tables.take(needOf('x'), b, of('b')))).toBe(true);
  expect(isTaken(tables.take(needOf('x', 'tunnel', 2), a, of('a')))).toBe(true);
  expect(isTaken(tables.take(needOf('y'), a, of('a')))).toBe(true);
});

it('who is limited is told how long to wait', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  const served = {};
  for (let at = 0; at < 2; at += 1) tables.take(needOf('x'), served, of('a'));
  expect(tables.take(needOf('x'), served, of('a'))).toEqual({ kind: 'token-taken', retryAfterSecs: 5 });
  await clock.advance(5000);
  expect(isTaken(tables.take(needOf('x'), served, of('a')))).toBe(true);
});

it('a tunnel that brings another policy begins anew with its own limits, never with the operator’s', () => {
  const tables = new LimiterTables(new FakeClock());
  const [old, next] = [{}, {}];
  for (const list of ['operator', 'tunnel'] as const) {
    for (let at = 0; at < 2; at += 1) tables.take(needOf('x', list), old, of('shop'));
  }
  tables.forget(old);
  expect(isTaken(tables.take(needOf('x'), next, of('shop')))).toBe(true);
  expect(isTaken(tables.take(needOf('x', 'operator'), next, of('shop')))).toBe(false);
  expect(isTaken(tables.take(needOf('x', 'operator'), next, of('other')))).toBe(true);
});

it('a flood at one tunnel takes the room of no other at a rule of the operator, and what is left of it goes', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  for (let at = 0; at <= CORE_LIMITS.LIMITER_KEYS_PER_RULE; at += 1) {
    for (let twice = 0; twice < 2; twice += 1) tables.take(needOf(`10.${at}`, 'operator'), {}, of('flooded'));
  }
  // The last of them shared a bucket, and it is empty.
  expect(isTaken(tables.take(needOf('somebody', 'operator'), {}, of('flooded')))).toBe(false);
  for (const person of ['ann', 'bo', 'cy']) {
    expect(isTaken(tables.take(needOf(person, 'operator'), {}, of('shop')))).toBe(true);
  }
  await clock.advance(3 * EDGE_LIMITS.LIMITER_SWEEP_MS);
  expect(tables.keys).toBe(0);
  tables.close();
});

it('a flood at the tunnels of one owner takes the room of no other owner’s limits', () => {
  const tables = new LimiterTables(new FakeClock());
  const rules = Array.from({ length: 30 }, (_, index) => index + 1);
  const served = {};
  for (const rule of rules) {
    for (let at = 0; at < 2000; at += 1) tables.take(needOf(`10.${at}`, 'tunnel', rule), served, of('a', 'flooded'));
  }
  expect(tables.keys).toBe(CORE_LIMITS.LIMITER_KEYS_PER_OWNER);
  const other = {};
  for (let at = 0; at < 100; at += 1) tables.take(needOf(`10.${at}`), other, of('b'));
  expect(tables.keys).toBe(CORE_LIMITS.LIMITER_KEYS_PER_OWNER + 100);
  tables.close();
});

it('what is forgotten, and what is idle, holds no keys', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  const served = {};
  for (let at = 0; at < 100; at += 1) tables.take(needOf(`x${at}`), served, of('a'));
  expect(tables.keys).toBe(100);
  tables.forget(served);
  expect(tables.keys).toBe(0);
  for (let at = 0; at < 100; at += 1) tables.take(needOf(`x${at}`), served, of('a'));
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
  tables.take(slow('x'), other, of('a'));
  expect([1, 2, 3].map((at) => isTaken(tables.take(slow(`y${at}`), served, of('b'))))).toEqual([true, true, false]);
  await clock.advance(2 * EDGE_LIMITS.LIMITER_SWEEP_MS);
  expect(isTaken(tables.take(slow('y4'), served, of('b')))).toBe(false);
  tables.close();
});
