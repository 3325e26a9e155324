// A pooler between the platform and PostgreSQL: settings last for one transaction only, and the platform still notices changes.
import { createLogger, type Logger, type Secret, systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ChangeListener } from '../services/edges/change-listener.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { DatabaseProxy } from './database-proxy.fixture.ts';
import { createTestDatabase, type TestDatabase } from './test-database.fixture.ts';

const silent = createLogger({ level: 'silent', format: 'json' });

let database: TestDatabase;
let url: Secret;
const endings: (() => Promise<void>)[] = [];
beforeEach(async () => {
  database = await createTestDatabase();
  const proxy = new DatabaseProxy(database.directUrl, { isPooler: true });
  url = await proxy.reserve();
  await proxy.open();
  endings.push(
    () => database.close(),
    () => proxy.cut(),
  );
});
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

const open = (options: Partial<DatabaseOptions> = {}): Database => {
  const opened = new Database({ url, logger: silent, ...options });
  endings.push(() => opened.close());
  return opened;
};

const limits = sql<{ of: string; idle: string }>`select current_setting('statement_timeout') as of,
  current_setting('idle_in_transaction_session_timeout') as idle`;

it('statement timeouts apply within each transaction and remain on no pooled connection', async () => {
  const { db } = open({ timeoutMs: 4321, connections: 1 });
  const within = { of: '4321ms', idle: '4321ms' };
  for (const transaction of [db.transaction(), db.transaction().setIsolationLevel('repeatable read')]) {
    expect((await transaction.execute((trx) => limits.execute(trx))).rows).toEqual([within]);
    expect((await limits.execute(db)).rows).toEqual([{ of: '0', idle: '0' }]);
  }
  await expect(
    db.transaction().execute(async (trx) => {
      await limits.execute(trx);
      throw new Error('rolled back');
    }),
  ).rejects.toThrow('rolled back');
  expect((await limits.execute(db)).rows).toEqual([{ of: '0', idle: '0' }]);
});

it('a pooler is detected with the first connection', async () => {
  const pooled = open();
  const direct = open({ url: database.directUrl });
  expect([pooled.isPooled, direct.isPooled]).toEqual([false, false]);
  await Promise.all([limits.execute(pooled.db), limits.execute(direct.db)]);
  expect([pooled.isPooled, direct.isPooled]).toEqual([true, false]);
});

const listening = sql`select from pg_stat_activity where datname = current_database() and query ilike 'listen %'`;

it('behind a pooler the platform polls for changes instead of listening, and logs the config key once', async () => {
  const told: object[] = [];
  let calls = 0;
  const logger = { ...silent, warn: (about: object) => void told.push(about) } as unknown as Logger;
  const { pool, db } = open();
  const listener = new ChangeListener({ pool, clock: systemClock, logger, onCall: () => (calls += 1) });
  listener.start();
  await eventually(() => expect(calls).toBeGreaterThan(2));
  expect(told).toEqual([{ key: 'database.direct_url' }]);
  expect((await listening.execute(db)).rows).toEqual([]);
  await listener.stop();
});

it('with a direct URL the platform listens at PostgreSQL itself', async () => {
  let calls = 0;
  const { pool } = open({ url: database.directUrl, connections: 1 });
  const listener = new ChangeListener({ pool, clock: systemClock, logger: silent, onCall: () => (calls += 1) });
  listener.start();
  await eventually(async () => expect((await listening.execute(open().db)).rows).toHaveLength(1));
  await listener.stop();
  expect(calls).toBeGreaterThan(0);
});
