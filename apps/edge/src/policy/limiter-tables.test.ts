import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { LIMITER_SWEEP_MS, LimiterTables, type TokenNeed, type TokenSubject } from './limiter-tables.ts';
import { LIMITER_KEYS, LimiterBudget } from './request-limiter.rules.ts';

const needOf = (key: string, list: 'operator' | 'tunnel' = 'tunnel', index = 1): TokenNeed => ({
  kind: 'take-token',
  rule: { list, index, name: null, action: 'rate_limit' },
  key,
  requests: 2,
  perSecs: 10,
  burst: 2,
});

const aboutOf = (served: object, routeKey: string, tenant = 'account 1'): TokenSubject => ({
  served,
  routeKey,
  tenant,
});

const isTaken = (event: ReturnType<LimiterTables['take']>): boolean =>
  event.kind === 'token-taken' && event.retryAfterSecs === null;

it('each route counts for itself, though their policies are equal; each rule, too', () => {
  const tables = new LimiterTables(new FakeClock());
  const a = {};
  const b = {};
  expect([1, 2, 3].map(() => isTaken(tables.take(needOf('x'), aboutOf(a, 'a'))))).toEqual([true, true, false]);
  expect(isTaken(tables.take(needOf('x'), aboutOf(b, 'b')))).toBe(true);
  expect(isTaken(tables.take(needOf('x', 'tunnel', 2), aboutOf(a, 'a')))).toBe(true);
  expect(isTaken(tables.take(needOf('y'), aboutOf(a, 'a')))).toBe(true);
});

it('who is limited is told how long to wait', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  const served = {};
  for (let at = 0; at < 2; at += 1) tables.take(needOf('x'), aboutOf(served, 'a'));
  expect(tables.take(needOf('x'), aboutOf(served, 'a'))).toEqual({ kind: 'token-taken', retryAfterSecs: 5 });
  await clock.advance(5000);
  expect(isTaken(tables.take(needOf('x'), aboutOf(served, 'a')))).toBe(true);
});

it('a tunnel that brings another policy begins anew with its own limits, never with the operator’s', () => {
  const tables = new LimiterTables(new FakeClock());
  const old = {};
  const next = {};
  for (const list of ['operator', 'tunnel'] as const) {
    for (let at = 0; at < 2; at += 1) tables.take(needOf('x', list), aboutOf(old, 'shop'));
  }
  tables.forget(old);
  expect(isTaken(tables.take(needOf('x'), aboutOf(next, 'shop')))).toBe(true);
  expect(isTaken(tables.take(needOf('x', 'operator'), aboutOf(next, 'shop')))).toBe(false);
  expect(isTaken(tables.take(needOf('x', 'operator'), aboutOf(next, 'other')))).toBe(true);
});

it('a flood at one tunnel takes the room of no other at a rule of the operator, and what is left of it goes', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  for (let at = 0; at <= LIMITER_KEYS.perRule; at += 1) {
    for (let twice = 0; twice < 2; twice += 1) tables.take(needOf(`10.${at}`, 'operator'), aboutOf({}, 'flooded'));
  }
  // The last of them shared a bucket, and it is empty.
  expect(isTaken(tables.take(needOf('somebody', 'operator'), aboutOf({}, 'flooded')))).toBe(false);
  for (const person of ['ann', 'bo', 'cy']) {
    expect(isTaken(tables.take(needOf(person, 'operator'), aboutOf({}, 'shop')))).toBe(true);
  }
  await clock.advance(3 * LIMITER_SWEEP_MS);
  expect(tables.keys).toBe(0);
  tables.close();
});

it('what is forgotten, and what is idle, holds no keys', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  const served = {};
  for (let at = 0; at < 100; at += 1) tables.take(needOf(`x${at}`), aboutOf(served, 'a'));
  expect(tables.keys).toBe(100);
  tables.forget(served);
  expect(tables.keys).toBe(0);
  for (let at = 0; at < 100; at += 1) tables.take(needOf(`x${at}`), aboutOf(served, 'a'));
  await clock.advance(LIMITER_SWEEP_MS);
  expect(tables.keys).toBe(0);
  tables.close();
  expect(clock.pendingTimers).toBe(0);
});

it('on an edge that is full a limit is not begun anew with each sweep', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock, new LimiterBudget(1));
  const slow = (key: string): TokenNeed => ({ ...needOf(key), perSecs: 3600 });
  const other = {};
  const served = {};
  // All the room there is: from here on keys share the bucket of their rule.
  tables.take(slow('x'), aboutOf(other, 'a'));
  expect([1, 2, 3].map((at) => isTaken(tables.take(slow(`y${at}`), aboutOf(served, 'b'))))).toEqual([
    true,
    true,
    false,
  ]);
  await clock.advance(2 * LIMITER_SWEEP_MS);
  expect(isTaken(tables.take(slow('y4'), aboutOf(served, 'b')))).toBe(false);
  tables.close();
});

it('a flood at one tunnel fills no table of the operator’s rules for another tenant', () => {
  const tables = new LimiterTables(new FakeClock());
  const flooded = aboutOf({}, 'evil', 'account 2');
  for (let at = 0; at < 20_000; at += 1) tables.take(needOf(`x${at}`, 'operator'), flooded);
  const shop = aboutOf({}, 'shop');
  const taken = Array.from({ length: 1000 }, (_, at) => isTaken(tables.take(needOf(`y${at}`, 'operator'), shop)));
  expect(taken).not.toContain(false);
  tables.close();
});

it('one tenant with many rules takes its share of the keys, and another’s are counted one by one as before', () => {
  const tables = new LimiterTables(new FakeClock(), new LimiterBudget(1000, 250));
  const evil = aboutOf({}, 'evil', 'account 2');
  const shop = aboutOf({}, 'shop');
  tables.take(needOf('known'), shop);
  for (let rule = 1; rule <= 50; rule += 1) {
    for (let at = 0; at < 100; at += 1) tables.take(needOf(`x${at}`, 'tunnel', rule), evil);
  }
  expect(tables.keys).toBe(251);
  expect([1, 2].map(() => isTaken(tables.take(needOf('known'), shop)))).toEqual([true, false]);
  const taken = Array.from({ length: 100 }, (_, at) => isTaken(tables.take(needOf(`y${at}`), shop)));
  expect(taken).not.toContain(false);
  tables.close();
});
