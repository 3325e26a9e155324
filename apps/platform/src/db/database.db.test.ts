import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '@tunnel/runtime';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Database } from './database.ts';
import { isDatabaseAway } from './database-away.ts';
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

describe('a connection that breaks', () => {
  it('between two queries of a transaction fails that transaction, says that the database is away, and nothing else', async () => {
    const work = database.db.transaction().execute(async (trx) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
      await killed(rows[0]?.pid ?? 0);
      await sql`select 1`.execute(trx);
    });
    const error = await work.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(isDatabaseAway(error)).toBe(true);
    expect((await sql`select 1`.execute(database.db)).rows).toHaveLength(1);
  });

  it('while idle is told of, and not when everything ends', async () => {
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
