// Reports usage to the payment processor: cuts usage into events every minute, and sends waiting events until the processor has accepted
// them.

import { Fault } from '@tunnel/errors';
import type { Clock, Logger, Timer } from '@tunnel/runtime';
import { sql } from 'kysely';
import type { Db } from '../../db/database.ts';
import { DatabaseAway } from '../../db/database-away.ts';
import { LIMITS } from '../../limits.ts';
import { TimeoutError, withTimeout } from '../../timeout.ts';
import type { Processor } from '../processor/processor.ts';
import { monthEnd } from '../rules/rating.rules.ts';
import {
  type ClaimedEvent,
  claimEvents,
  countWaiting,
  cutUsage,
  noteFirstTry,
  noteRetry,
  noteSent,
  openFrom,
} from './meter-events.ts';

/** Interval for cutting usage into meter events. An account gets at most one event per month and interval. */
const METER_CUT_EVERY_MS = 60_000;
/** Interval between searches for meter events waiting to be reported. */
const METER_POLL_MS = 5000;
/** Time limit of a call that reports a meter event to the payment processor. */
const METER_CALL_TIMEOUT_MS = 5000;
/** First pause before a failed report of a meter event is retried. */
const METER_RETRY_MIN_MS = 5000;
/** Maximum pause before a failed report of a meter event is retried. Pauses grow up to the limit. */
const METER_RETRY_MAX_MS = 10 * 60_000;
/**
 * Age of the first attempt from which the event is first searched for in the processor's sums. The processor forgets an identifier after
 * 24 h, so a repeated event could be counted twice.
 */
const METER_COMPARE_AFTER_MS = 20 * 60 * 60_000;
/** Time limit for reporting an account's remaining usage. Shorter than the payment processor's wait for the response to a webhook. */
const METER_FLUSH_MS = 8000;
/** Interval for checking whether the last events of an account have been sent, while flush waits. */
const METER_FLUSH_LOOK_MS = 200;

export interface MeteringContext {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly processor: Pick<Processor, 'reportUsage' | 'meteredBytes'>;
  readonly random?: () => number;
}

/** Maximum number of rejected events remembered, to log a rejection only once. Rejections beyond the limit are not logged. */
const REFUSED_MAX = 10_000;

export class Metering {
  readonly #context: Required<MeteringContext>;
  #timer: Timer | undefined;
  #round: Promise<void> | undefined;
  #nextCutAt = 0;
  /** True while the processor is unavailable. An outage is logged once when it begins and once when it ends. */
  #isAway = false;
  readonly #refused = new Set<string>();

  constructor(context: MeteringContext) {
    this.#context = { ...context, random: context.random ?? Math.random };
  }

  start(): void {
    this.#timer ??= this.#context.clock.setInterval(() => this.#wake(), METER_POLL_MS);
    this.#wake();
  }

  /** Stops reporting. A running call gets a short time to finish. If its response is lost, the event is sent again after the next start. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const { clock } = this.#context;
    await withTimeout(clock, this.#round ?? Promise.resolve(), LIMITS.HTTP_STOP_GRACE_MS).catch(() => {});
  }

  /** Cuts and sends the usage of one account up to now. Rejects if the processor has not accepted every event. */
  async flush(userId: string): Promise<void> {
    const { db, clock } = this.#context;
    const endsAt = clock.monotonic() + METER_FLUSH_MS;
    // Waiting events are sent first, because an unsent event prevents its month from being cut.
    await this.#sendWaiting(userId, endsAt);
    await cutUsage(db, { now: clock.now(), userId });
    await this.#sendWaiting(userId, endsAt);
  }

  async #sendWaiting(userId: string, endsAt: number): Promise<void> {
    const { db, clock } = this.#context;
    for (;;) {
      const events = await claimEvents(db, { now: clock.now(), userId });
      await this.#sendAll(events);
      if (events.length > 0) continue;
      if ((await countWaiting(db, userId)) === 0) return;
      // The remaining event is claimed by another round, in this process or in another process.
      if (clock.monotonic() >= endsAt) throw new Fault('BILLING_PROCESSOR_AWAY');
      await pause(clock, METER_FLUSH_LOOK_MS);
    }
  }

  #wake(): void {
    if (this.#timer === undefined || this.#round !== undefined) return;
    this.#round = this.#run().finally(() => {
      this.#round = undefined;
    });
  }

  async #run(): Promise<void> {
    const { db, clock, logger } = this.#context;
    try {
      const now = clock.now();
      if (now >= this.#nextCutAt) {
        await cutUsage(db, { now });
        this.#nextCutAt = now + METER_CUT_EVERY_MS;
      }
      while (this.#timer !== undefined) {
        const events = await claimEvents(db, { now: clock.now() });
        if (events.length === 0) return;
        // After an outage, sending further events would fail as well. The next round retries.
        await this.#sendAll(events).catch(() => {});
        if (this.#isAway) return;
      }
    } catch (error) {
      // The database watch already logs an unavailable database.
      if (!(error instanceof DatabaseAway))
        logger.error({ err: error }, 'cannot report usage to the payment processor');
    }
  }

  /** Tries to send every event. Rejects with the first failure. */
  async #sendAll(events: readonly ClaimedEvent[]): Promise<void> {
    const results = await Promise.allSettled(events.map((event) => this.#send(event)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  async #send(event: ClaimedEvent): Promise<void> {
    try {
      await sendEvent(this.#context, event);
    } catch (error) {
      this.#failed(event, error);
      throw error;
    }
    this.#refused.delete(event.identifier);
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#context.logger.info({}, 'the payment processor accepts usage again');
  }

  #failed({ identifier, bytes, attempts }: ClaimedEvent, error: unknown): void {
    const { logger } = this.#context;
    const code = error instanceof Fault ? error.code : null;
    if (code === 'BILLING_PROCESSOR_AWAY') {
      if (!this.#isAway)
        logger.warn({}, 'cannot report usage; usage is kept until the payment processor is available again');
      this.#isAway = true;
    } else if (code === 'BILLING_PROCESSOR_REFUSED') {
      if (this.#refused.has(identifier) || this.#refused.size >= REFUSED_MAX) return;
      this.#refused.add(identifier);
      const fields = { identifier, bytes, attempts, err: error };
      logger.error(fields, 'the payment processor rejected usage; retrying');
    } else if (!(error instanceof DatabaseAway)) {
      logger.error({ identifier, err: error }, 'usage was not reported; retrying');
    }
  }
}

const pause = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => {
    clock.setTimeout(resolve, ms);
  });

type SendContext = Required<Omit<MeteringContext, 'logger'>>;

/** Resolution of the payment processor's usage sums. */
const MINUTE_MS = 60_000;

/**
 * Reports a meter event to the processor. An event is sent with the same identifier until the response is known. If the response was lost
 * so long ago that the processor may have forgotten the identifier, the event is first searched for in the processor's sums. On failure,
 * schedules a retry and rejects with the processor's error.
 */
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

/**
 * Returns true if the event must first be searched for in the processor's sums: the first attempt is long ago, or the month has closed
 * since. In a closed month the event needs a new time, and the processor may already have it with the old time.
 */
const needsLook = ({ triedAt, month, at }: ClaimedEvent, now: number): boolean =>
  triedAt !== null && (now - triedAt >= METER_COMPARE_AFTER_MS || isClosed(month, at, now));

const isClosed = (month: string, at: number, now: number): boolean => month < openFrom(now) && at < monthEnd(month);

/** Returns null if the processor has already counted the event. Otherwise records a new first attempt and returns the event to send. */
const lookFirst = async (context: SendContext, event: ClaimedEvent): Promise<ClaimedEvent | null> => {
  const { db, clock } = context;
  if (await bounded(clock, wasCounted(context, event))) return null;
  const now = clock.now();
  const at = isClosed(event.month, event.at, now) ? now : event.at;
  await noteFirstTry(db, event, now, at);
  return { ...event, at };
};

/**
 * Returns true if the processor's sum for the event's minute exceeds the known accepted usage by at least the event's size. In doubt the
 * event counts as accepted, so that nothing is charged twice.
 */
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

/** Limits the time of a call to the payment processor, because the claim on the event must outlive the call. */
const bounded = <T>(clock: Clock, call: Promise<T>): Promise<T> =>
  withTimeout(clock, call, METER_CALL_TIMEOUT_MS).catch((error: unknown) => {
    throw error instanceof TimeoutError ? new Fault('BILLING_PROCESSOR_AWAY', {}, { cause: error }) : error;
  });

/** Returns the time of the next attempt. The pause doubles after every failure, with jitter, because events fail at the same time. */
const retryAt = (attempts: number, now: number, random: number): number => {
  const delayMs = Math.min(METER_RETRY_MAX_MS, METER_RETRY_MIN_MS * 2 ** Math.min(attempts - 1, 30));
  return Math.round(now + delayMs * (0.75 + random / 2));
};
