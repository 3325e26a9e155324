import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { LIMITER_SWEEP_MS, LimiterTables, type TokenEffect, type TokenSubject } from './limiter-tables.ts';
import { LIMITER_KEYS, LimiterBudget } from './request-limiter.rules.ts';

const effectOf = (key: string, list: 'operator' | 'tunnel' = 'tunnel', index = 1): TokenEffect => ({
  kind: 'take-token',
  rule: { list, index, name: null, action: 'rate_limit' },
  key,
  requests: 2,
  perSecs: 10,
  burst: 2,
});

const subjectOf = (served: object, routeKey: string, tenant = 'account 1'): TokenSubject => ({
  served,
  routeKey,
  tenant,
});

const isTaken = (event: ReturnType<LimiterTables['take']>): boolean =>
  event.kind === 'token-taken' && event.retryAfterSecs === null;

it('each route and each rule counts separately, even with equal policies', () => {
  const tables = new LimiterTables(new FakeClock());
  const a = {};
  const b = {};
  expect([1, 2, 3].map(() => isTaken(tables.take(effectOf('x'), subjectOf(a, 'a'))))).toEqual([true, true, false]);
  expect(isTaken(tables.take(effectOf('x'), subjectOf(b, 'b')))).toBe(true);
  expect(isTaken(tables.take(effectOf('x', 'tunnel', 2), subjectOf(a, 'a')))).toBe(true);
  expect(isTaken(tables.take(effectOf('y'), subjectOf(a, 'a')))).toBe(true);
});

it('a limited request gets the time to wait', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  const served = {};
  for (let at = 0; at < 2; at += 1) tables.take(effectOf('x'), subjectOf(served, 'a'));
  expect(tables.take(effectOf('x'), subjectOf(served, 'a'))).toEqual({ kind: 'token-taken', retryAfterSecs: 5 });
  await clock.advance(5000);
  expect(isTaken(tables.take(effectOf('x'), subjectOf(served, 'a')))).toBe(true);
});

it('a new policy resets the tunnel’s limits, but not the operator’s limits', () => {
  const tables = new LimiterTables(new FakeClock());
  const old = {};
  const next = {};
  for (const list of ['operator', 'tunnel'] as const) {
    for (let at = 0; at < 2; at += 1) tables.take(effectOf('x', list), subjectOf(old, 'shop'));
  }
  tables.forget(old);
  expect(isTaken(tables.take(effectOf('x'), subjectOf(next, 'shop')))).toBe(true);
  expect(isTaken(tables.take(effectOf('x', 'operator'), subjectOf(next, 'shop')))).toBe(false);
  expect(isTaken(tables.take(effectOf('x', 'operator'), subjectOf(next, 'other')))).toBe(true);
});

it('a flood at one tunnel does not limit other tunnels under the operator’s rule, and its keys are removed later', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  for (let at = 0; at <= LIMITER_KEYS.perRule; at += 1) {
    for (let twice = 0; twice < 2; twice += 1) tables.take(effectOf(`10.${at}`, 'operator'), subjectOf({}, 'flooded'));
  }
  // The last keys of the flood shared a bucket, which is empty now.
  expect(isTaken(tables.take(effectOf('somebody', 'operator'), subjectOf({}, 'flooded')))).toBe(false);
  for (const person of ['ann', 'bo', 'cy']) {
    expect(isTaken(tables.take(effectOf(person, 'operator'), subjectOf({}, 'shop')))).toBe(true);
  }
  await clock.advance(3 * LIMITER_SWEEP_MS);
  expect(tables.keys).toBe(0);
  tables.close();
});

it('forgotten policies and idle limits leave no keys behind', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock);
  const served = {};
  for (let at = 0; at < 100; at += 1) tables.take(effectOf(`x${at}`), subjectOf(served, 'a'));
  expect(tables.keys).toBe(100);
  tables.forget(served);
  expect(tables.keys).toBe(0);
  for (let at = 0; at < 100; at += 1) tables.take(effectOf(`x${at}`), subjectOf(served, 'a'));
  await clock.advance(LIMITER_SWEEP_MS);
  expect(tables.keys).toBe(0);
  tables.close();
  expect(clock.pendingTimers).toBe(0);
});

it('on a full edge, sweeping does not reset a limit', async () => {
  const clock = new FakeClock();
  const tables = new LimiterTables(clock, new LimiterBudget(1));
  const slow = (key: string): TokenEffect => ({ ...effectOf(key), perSecs: 3600 });
  const other = {};
  const served = {};
  // The key `x` takes the last room. From here on, new keys share the bucket of their rule.
  tables.take(slow('x'), subjectOf(other, 'a'));
  expect([1, 2, 3].map((at) => isTaken(tables.take(slow(`y${at}`), subjectOf(served, 'b'))))).toEqual([
    true,
    true,
    false,
  ]);
  await clock.advance(2 * LIMITER_SWEEP_MS);
  expect(isTaken(tables.take(slow('y4'), subjectOf(served, 'b')))).toBe(false);
  tables.close();
});

it('a flood at one tenant’s tunnel does not limit another tenant under the operator’s rules', () => {
  const tables = new LimiterTables(new FakeClock());
  const flooded = subjectOf({}, 'evil', 'account 2');
  for (let at = 0; at < 20_000; at += 1) tables.take(effectOf(`x${at}`, 'operator'), flooded);
  const shop = subjectOf({}, 'shop');
  const taken = Array.from({ length: 1000 }, (_, at) => isTaken(tables.take(effectOf(`y${at}`, 'operator'), shop)));
  expect(taken).not.toContain(false);
  tables.close();
});

it('a tenant with many rules gets only its share of the keys; keys of another tenant keep separate buckets', () => {
  const tables = new LimiterTables(new FakeClock(), new LimiterBudget(1000, 250));
  const evil = subjectOf({}, 'evil', 'account 2');
  const shop = subjectOf({}, 'shop');
  tables.take(effectOf('known'), shop);
  for (let rule = 1; rule <= 50; rule += 1) {
    for (let at = 0; at < 100; at += 1) tables.take(effectOf(`x${at}`, 'tunnel', rule), evil);
  }
  expect(tables.keys).toBe(251);
  expect([1, 2].map(() => isTaken(tables.take(effectOf('known'), shop)))).toEqual([true, false]);
  const taken = Array.from({ length: 100 }, (_, at) => isTaken(tables.take(effectOf(`y${at}`), shop)));
  expect(taken).not.toContain(false);
  tables.close();
});
