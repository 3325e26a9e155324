import { setTimeout as pause } from 'node:timers/promises';
import { createLogger, type Logger } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Database } from './database.ts';
import { DatabaseAway } from './database-away.ts';
import { DatabaseProxy } from './database-proxy.fixture.ts';
import { createTestDatabase, type TestDatabase } from './test-database.fixture.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.close());

const killed = async (pid: number): Promise<void> => {
  await sql`select pg_terminate_backend(${pid})`.execute(database.db);
  const alive = async () =>
    (await sql`select 1 from pg_stat_activity where pid = ${pid}`.execute(database.db)).rows.length > 0;
  while (await alive()) await pause(5);
};

describe('a broken database connection', () => {
  it('fails only the transaction that was using it, with DatabaseAway', async () => {
    const work = database.db.transaction().execute(async (trx) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
      await killed(rows[0]?.pid ?? 0);
      await sql`select 1`.execute(trx);
    });
    const error = await work.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(DatabaseAway);
    expect((await sql`select 1`.execute(database.db)).rows).toHaveLength(1);
  });

  it('is logged if idle, but not after the pool was closed', async () => {
    const warn = vi.fn();
    const own = new Database({ url: database.url, logger: { warn } as unknown as Logger });
    const lost = (): unknown => own.pool.emit('error', new Error('lost'), {});
    lost();
    expect(warn).toHaveBeenCalledOnce();
    await own.close();
    lost();
    expect(warn).toHaveBeenCalledOnce();
  });
});

const silent = createLogger({ level: 'silent', format: 'json' });
const reasonOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (reason: unknown) => reason,
  );

/** Waits for the first connection. With the timeout of one second, a connection attempt can fail on a busy machine. */
const met = (own: Database): Promise<void> =>
  eventually(async () => expect((await sql`select 1`.execute(own.db)).rows).toHaveLength(1));

it('a database that hangs counts as unavailable after the timeout, and its connection is discarded', async () => {
  const proxy = new DatabaseProxy(database.url);
  const url = await proxy.reserve();
  await proxy.open();
  const own = new Database({ url, logger: silent, timeoutMs: 1000, connections: 1 });
  try {
    await met(own);
    const work = own.db.transaction().execute(async (trx) => {
      await sql`select 1`.execute(trx);
      proxy.freeze();
      await sql`select 2`.execute(trx);
    });
    expect(await reasonOf(work)).toBeInstanceOf(DatabaseAway);
    await met(own);
  } finally {
    await own.close();
    await proxy.cut();
  }
});

it('a statement has no time limit on a patient connection', async () => {
  const hasty = new Database({ url: database.url, logger: silent, timeoutMs: 1000 });
  const patient = new Database({ url: database.url, logger: silent, timeoutMs: 1000, patient: true });
  await Promise.all([met(hasty), met(patient)]);
  const slow = ({ db }: Database): Promise<unknown> =>
    reasonOf(db.transaction().execute((trx) => sql`select pg_sleep(1.5)`.execute(trx)));
  const [cut, done] = await Promise.all([slow(hasty), slow(patient)]);
  expect([cut, done]).toEqual([expect.objectContaining({ code: '57014' }), null]);
  await Promise.all([hasty.close(), patient.close()]);
});

it('PostgreSQL applies the statement timeout inside and outside of transactions', async () => {
  const own = new Database({ url: database.directUrl, logger: silent, timeoutMs: 4321 });
  const limits = sql<{ of: string; idle: string }>`select current_setting('statement_timeout') as of,
    current_setting('idle_in_transaction_session_timeout') as idle`;
  const expected = [{ of: '4321ms', idle: '4321ms' }];
  expect((await limits.execute(own.db)).rows).toEqual(expected);
  expect((await own.db.transaction().execute((trx) => limits.execute(trx))).rows).toEqual(expected);
  expect(own.isPooled).toBe(false);
  await own.close();
});
