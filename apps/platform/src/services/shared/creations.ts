// Limits how many objects an account creates per day. Even a deleted object leaves entries in the audit log, so limits on existing
// objects do not bound the log.
import { Fault } from '@tunnel/errors';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import type { ServiceContext } from './service-context.ts';

export type CreationContext = Pick<ServiceContext, 'clock' | 'settings'>;

const DAY_MS = 24 * 60 * 60_000;

/**
 * Counts a creation, in the transaction that creates the object. Throws API_WRITES_PER_DAY above the limit. The count is in the database,
 * so that it survives a restart and covers all platform processes. Around midnight the clocks of two processes may name different days.
 * The later day counts then, because a count alternating between two days would restart every time.
 */
export const countCreation = async (
  trx: Transaction<Schema>,
  { clock, settings }: CreationContext,
  userId: string,
): Promise<void> => {
  const limit = settings.limits.creating_writes_per_day;
  const now = clock.now();
  const today = new Date(now).toISOString().slice(0, 10);
  const { rows } = await sql<{ created_count: number }>`
    update users
    set
      created_on = case when created_on = ${today}::date + 1 then created_on else ${today}::date end,
      created_count = case when created_on in (${today}::date, ${today}::date + 1) then created_count + 1 else 1 end
    where id = ${userId} returning created_count
  `.execute(trx);
  if ((rows[0]?.created_count ?? 0) <= limit) return;
  throw new Fault('API_WRITES_PER_DAY', { limit, seconds: Math.ceil((DAY_MS - (now % DAY_MS)) / 1000) });
};
