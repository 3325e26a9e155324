import { createLogger, systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Database } from '../db/database.ts';
import { createTestDatabase, type TestDatabase } from '../db/test-database.fixture.ts';
import { AccountLocks } from './account-locks.ts';

const ADA = '0b6f3a54-6a0e-4f0e-9a53-0d7c3a1f5b11';
const BOB = '6c1b8f5e-21ad-4f0c-8d57-3c5a0b1d9e77';

let database: TestDatabase;
/** Database connection of a second platform process. */
let elsewhere: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  const logger = createLogger({ level: 'silent', format: 'json' });
  elsewhere = new Database({ url: database.url, logger, connections: 3 });
});
afterAll(async () => {
  await elsewhere.close();
  await database.close();
});

const locksOf = (db: TestDatabase['db'], waitMs?: number): AccountLocks =>
  new AccountLocks({ db, clock: systemClock, ...(waitMs === undefined ? {} : { waitMs }) });

const held = () => {
  let end = (): void => {};
  const until = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { until, end };
};

it('an account lock has at most a single holder at a time across all processes', async () => {
  const here = locksOf(database.db);
  const there = locksOf(elsewhere.db);
  let inside = 0;
  const seen: number[] = [];
  const work = async (trx: TestDatabase['db']): Promise<void> => {
    seen.push((inside += 1));
    await sql`select pg_sleep(0.01)`.execute(trx);
    inside -= 1;
  };
  await Promise.all(Array.from({ length: 12 }, (_, turn) => (turn % 2 === 0 ? here : there).hold(ADA, work)));
  expect(seen).toEqual(Array.from({ length: 12 }, () => 1));
});

it('a lock on another account is acquired without waiting', async () => {
  const locks = locksOf(database.db);
  const ada = held();
  const first = locks.hold(ADA, () => ada.until);
  expect(await locks.hold(BOB, async () => 'done')).toBe('done');
  ada.end();
  await first;
});

it('waiting too long for an account lock fails with BILLING_BUSY, in the same and in another process', async () => {
  const locks = locksOf(database.db, 100);
  const ada = held();
  let begun = false;
  const first = locks.hold(ADA, () => {
    begun = true;
    return ada.until;
  });
  await eventually(() => expect(begun).toBe(true));
  const busy = { code: 'BILLING_BUSY', status: 503, values: { seconds: 2 } };
  await expect(locks.hold(ADA, async () => 'in')).rejects.toMatchObject(busy);
  await expect(locksOf(elsewhere.db, 100).hold(ADA, async () => 'in')).rejects.toMatchObject(busy);
  ada.end();
  await first;
  expect(await locksOf(elsewhere.db).hold(ADA, async () => 'in')).toBe('in');
});

it('30 waiters for the same account lock leave database connections free for other queries', async () => {
  const locks = locksOf(database.db);
  const ada = held();
  const all = Array.from({ length: 30 }, () => locks.hold(ADA, () => ada.until));
  const { rows } = await sql<{ one: number }>`select 1 as one`.execute(database.db);
  expect(rows).toEqual([{ one: 1 }]);
  ada.end();
  await Promise.all(all);
});

it('a failed transaction releases the account lock and writes nothing', async () => {
  const locks = locksOf(database.db);
  const failing = locks.hold(ADA, async (trx) => {
    await trx.insertInto('audit_log').values({ actor: 'system', action: 'test', user_id: null }).execute();
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await locks.hold(ADA, async (trx) => trx.selectFrom('audit_log').selectAll().execute())).toEqual([]);
});
