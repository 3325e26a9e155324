// Any order and number of deliveries must give the same final state. Replays lives recorded at the simulator in random order.

import { loadServerConfig } from '@tunnel/config/server';
import { createLogger } from '@tunnel/runtime';
import type { Delivery } from '@tunnel/simulator/fixture';
import { FakeClock } from '@tunnel/testkit';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AccountLocks } from '../../billing/account-locks.ts';
import {
  openSimulatedProcessor,
  type SimulatedProcessor,
} from '../../billing/processor/simulated-processor.fixture.ts';
import { createTestDatabase, type TestDatabase } from '../../db/test-database.fixture.ts';
import { upsertPlans } from '../plans/plans.ts';
import { NOON } from './billing.fixture.ts';
import { type BillingContext, findAccount } from './billing-account.ts';
import { MemoryProcessor } from './memory-processor.fixture.ts';
import { receiveEvent } from './receive-event.ts';
import { type RecordedLife, recordLife } from './recorded-life.fixture.ts';

const TIMES = 3;
const RUNS = 3;

let simulated: SimulatedProcessor;
let database: TestDatabase;
let userId: string;
let life: RecordedLife;
const clock = new FakeClock(NOON);
const settings = loadServerConfig({ env: {} }).platform;

beforeAll(async () => {
  simulated = await openSimulatedProcessor();
  database = await createTestDatabase();
  const { db } = database;
  await upsertPlans(db, settings.plans);
  const row = { email: 'ada@example.com', plan: 'free', display_name: null, password_hash: null };
  userId = (await db.insertInto('users').values(row).returning('id').executeTakeFirstOrThrow()).id;
  life = await recordLife(simulated, userId);
}, 60_000);
afterAll(async () => {
  await database.close();
  await simulated.close();
});

const contextOf = (processor: BillingContext['processor']): BillingContext => ({
  db: database.db,
  clock,
  settings,
  processor,
  logger: createLogger({ level: 'silent', format: 'json' }),
  locks: new AccountLocks({ db: database.db, clock }),
  metering: { flush: async () => {} },
});

/** Resets the database to the state before the first event of the customer. */
const forgetAll = async (): Promise<void> => {
  const { db } = database;
  await db.deleteFrom('billing_accounts').execute();
  await db.deleteFrom('processor_events').execute();
  await db.updateTable('users').set({ plan: 'free' }).execute();
  await db.insertInto('billing_accounts').values({ user_id: userId, customer_id: life.customerId }).execute();
};

const stateNow = async () => {
  const account = await findAccount(database.db, userId);
  const { plan } = await database.db.selectFrom('users').select('plan').executeTakeFirstOrThrow();
  // limit_check_at is ignored: a replay that never saw the paid plan has no limit to check.
  return { ...account, plan, synced_at: null, updated_at: null, limit_check_at: null };
};

const deliver = (context: BillingContext, { body, signature }: Delivery): Promise<void> =>
  receiveEvent(context, { body: new TextEncoder().encode(body), signature });

const shuffled = <T>(items: readonly T[], keys: readonly number[]): T[] =>
  items
    .map((item, index) => ({ item, key: keys[index % keys.length] ?? 0 }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item);

const keys = (length: number) => fc.array(fc.nat(), { minLength: length, maxLength: length, size: 'max' });

/**
 * Replays the steps with the customer's facts of each step. Events arrive in their step or later, and some find the processor
 * unavailable.
 */
const replay = async (steps: RecordedLife['steps'], random: readonly number[]): Promise<void> => {
  const processor = new MemoryProcessor();
  processor.readEvent = (body, signature) => simulated.processor.readEvent(body, signature);
  const context = contextOf(processor);
  let at = 0;
  const next = (): number => random[(at += 1) % random.length] ?? 0;
  const waiting = steps.map((): Delivery[] => []);
  for (const [index, { deliveries }] of steps.entries()) {
    for (const delivery of deliveries) {
      for (let time = 0; time < TIMES; time += 1) waiting[index + (next() % (steps.length - index))]?.push(delivery);
    }
  }
  const failed: Delivery[] = [];
  for (const [index, { facts }] of steps.entries()) {
    processor.customers.set(life.customerId, facts);
    for (const delivery of shuffled(waiting[index] ?? [], random.slice(index))) {
      processor.mood = next() % 5 === 0 ? 'away' : 'well';
      await deliver(context, delivery).catch(() => failed.push(delivery));
    }
  }
  processor.mood = 'well';
  // Failed deliveries are sent again.
  for (const delivery of failed) await deliver(context, delivery);
};

/** Delivers each event once and in order, without failures. */
const inOrder = async (steps: RecordedLife['steps']) => {
  await forgetAll();
  const processor = new MemoryProcessor();
  processor.readEvent = (body, signature) => simulated.processor.readEvent(body, signature);
  for (const { facts, deliveries } of steps) {
    processor.customers.set(life.customerId, facts);
    for (const delivery of deliveries) await deliver(contextOf(processor), delivery);
  }
  return stateNow();
};

describe('a recorded subscription life', () => {
  it('covers every state of a subscription', () => {
    expect(life.steps.map(({ name, facts: { subscription } }) => [name, subscription?.status ?? null])).toEqual([
      ['attach', null],
      ['subscribe', 'active'],
      ['month end, paid', 'active'],
      ['month end, failed', 'past_due'],
      ['paid after all', 'active'],
      ['set to end', 'active'],
      ['kept', 'active'],
      ['set to end again', 'active'],
      ['deleted', 'canceled'],
    ]);
    const types = new Set(life.steps.flatMap(({ deliveries }) => deliveries.map(({ type }) => type)));
    for (const type of [
      'payment_method.attached',
      'customer.subscription.created',
      'customer.subscription.updated',
      'customer.subscription.deleted',
      'invoice.created',
      'invoice.paid',
      'invoice.payment_failed',
    ]) {
      expect(types).toContain(type);
    }
    for (const { name, deliveries } of life.steps) expect([name, deliveries.length > 0]).toEqual([name, true]);
  });

  it('ends in the same state if each event comes three times in any order after the end', async () => {
    const all = life.steps.flatMap(({ deliveries }) => deliveries);
    const expected = await inOrder(life.steps);
    expect(expected).toMatchObject({ plan: 'free', subscription_status: 'canceled', subscriptions: 1 });
    const copies = Array.from({ length: TIMES }, () => all).flat();
    // Reads facts from the simulator, which is in its final state.
    const context = contextOf(simulated.processor);
    await fc.assert(
      fc.asyncProperty(keys(copies.length), async (random) => {
        await forgetAll();
        for (const delivery of shuffled(copies, random)) await deliver(context, delivery);
        expect(await stateNow()).toEqual(expected);
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
  }, 600_000);

  it('has the state of its events at every step, despite late, repeated, reordered and failed deliveries', async () => {
    const expected: Awaited<ReturnType<typeof inOrder>>[] = [];
    for (let end = 1; end <= life.steps.length; end += 1) expected.push(await inOrder(life.steps.slice(0, end)));
    expect(new Set(expected.map((state) => `${state.plan} ${state.subscription_status}`)).size).toBe(5);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: life.steps.length }), keys(300), async (end, random) => {
        await forgetAll();
        await replay(life.steps.slice(0, end), random);
        expect(await stateNow()).toEqual(expected[end - 1]);
      }),
      { numRuns: 2 * RUNS, endOnFailure: true },
    );
  }, 600_000);
});
