// Reports meter events to the processor. An event is sent with the same identifier until its answer is known; one whose answer
// was lost so long ago that the processor may have forgotten the identifier is looked for in its sums first.
import { monthEnd } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';
import { OutOfTime, within } from '../../within.ts';
import type { Processor } from '../processor/processor.ts';
import { type ClaimedEvent, noteFirstTry, noteRetry, noteSent, openFrom } from './meter-outbox.ts';

export interface SendContext {
  readonly db: Db;
  readonly clock: Clock;
  readonly processor: Pick<Processor, 'reportUsage' | 'meteredBytes'>;
  readonly random: () => number;
}

/** The sums of the processor are by the minute. */
const MINUTE_MS = 60_000;

/** Rejects with what the processor said; when the event is tried again is noted then. */
export const sendEvent = async (context: SendContext, event: ClaimedEvent): Promise<void> => {
  const { db, clock } = context;
  try {
    const asked = needsLook(event, clock.now()) ? await lookFirst(context, event) : event;
    if (asked !== null) await bounded(clock, report(context, asked));
  } catch (error) {
    await noteRetry(db, event, retryAt(event.attempts, clock.now(), context.random()));
    throw error;
  }
  await noteSent(db, event, clock.now());
};

const report = ({ processor }: SendContext, { identifier, customerId, bytes, at }: ClaimedEvent): Promise<void> =>
  processor.reportUsage({ identifier, customerId, bytes, at });

/** Also when its month closed since: it needs another time, and the processor may have it with the old one. */
const needsLook = ({ triedAt, month, at }: ClaimedEvent, now: number): boolean =>
  triedAt !== null && (now - triedAt >= PLATFORM_BOUNDS.METER_COMPARE_AFTER_MS || isClosed(month, at, now));

const isClosed = (month: string, at: number, now: number): boolean => month < openFrom(now) && at < monthEnd(month);

/** null: the processor has it. Else the event as it is to be sent, noted as a first try. */
const lookFirst = async (context: SendContext, event: ClaimedEvent): Promise<ClaimedEvent | null> => {
  const { db, clock } = context;
  if (await bounded(clock, wasCounted(context, event))) return null;
  const now = clock.now();
  const at = isClosed(event.month, event.at, now) ? now : event.at;
  await noteFirstTry(db, event, now, at);
  return { ...event, at };
};

/** In its minute the processor has more than what it is known to have taken. When in doubt it has: nothing is charged twice. */
const wasCounted = async ({ db, processor }: SendContext, event: ClaimedEvent): Promise<boolean> => {
  const from = Math.floor(event.at / MINUTE_MS) * MINUTE_MS;
  const to = from + MINUTE_MS;
  const { rows } = await sql<{ bytes: number }>`
    select coalesce(sum(bytes), 0)::bigint as bytes from meter_events
    where user_id = ${event.userId} and sent_at is not null
      and occurred_at >= ${new Date(from)} and occurred_at < ${new Date(to)}
  `.execute(db);
  const total = await processor.meteredBytes({ customerId: event.customerId, from, to });
  return total - (rows[0]?.bytes ?? 0) >= event.bytes;
};

/** The claim must outlive the call. */
const bounded = <T>(clock: Clock, call: Promise<T>): Promise<T> =>
  within(clock, call, PLATFORM_BOUNDS.METER_CALL_TIMEOUT_MS).catch((error: unknown) => {
    throw error instanceof OutOfTime ? new Fault('BILLING_PROCESSOR_AWAY', {}, { cause: error }) : error;
  });

/** Twice as long after each failure; spread, because events fail together. */
const retryAt = (attempts: number, now: number, random: number): number => {
  const { METER_RETRY_MIN_MS, METER_RETRY_MAX_MS } = PLATFORM_BOUNDS;
  const delayMs = Math.min(METER_RETRY_MAX_MS, METER_RETRY_MIN_MS * 2 ** Math.min(attempts - 1, 30));
  return Math.round(now + delayMs * (0.75 + random / 2));
};
