// A pool whose statements end also when the database neither answers nor hangs up: its machine froze, or a network swallows
// everything. PostgreSQL's own limit of a statement helps only while PostgreSQL runs.
import { systemClock } from '@tunnel/runtime';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import type pg from 'pg';
import { OutOfTime, within } from '../within.ts';
import { DatabaseSilent } from './database-away.ts';

export const answeringPool = (pool: pg.Pool, limitMs: number): PostgresPool => ({
  connect: async () => answeringClient(await pool.connect(), limitMs),
  end: () => pool.end(),
});

const answeringClient = (client: pg.PoolClient, limitMs: number): PostgresPoolClient => {
  let silence: DatabaseSilent | undefined;
  const query = async (text: string, parameters: readonly unknown[]): Promise<unknown> => {
    // What comes after, as the end of a transaction, would wait as long again.
    if (silence !== undefined) throw silence;
    try {
      return await within(systemClock, client.query(text, [...parameters]), limitMs);
    } catch (error) {
      if (!(error instanceof OutOfTime)) throw error;
      silence = new DatabaseSilent();
      throw silence;
    }
  };
  // One that did not answer is closed: nobody else should wait on it.
  return { query: query as PostgresPoolClient['query'], release: () => client.release(silence) };
};
