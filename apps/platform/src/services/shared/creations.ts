// How much an account makes in a day. What is deleted again leaves lines in the audit, so that the number of what exists is no bound for them.
import { Fault } from '@tunnel/errors';
import { sql, type Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import type { ServiceContext } from './service-context.ts';

export type CreationContext = Pick<ServiceContext, 'clock' | 'settings'>;

const DAY_MS = 24 * 60 * 60_000;

/**
 * In the transaction that makes something: counts it, or throws API_WRITES_PER_DAY. The number is in the database, so that a restart does not forget it
 * and all processes of the platform count together. Around midnight their clocks may name two days: the later day counts then, because a count that went
 * back and forth between the days would begin again each time.
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
