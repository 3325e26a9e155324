// Reports usage to the processor: cuts it into events every minute, sends what waits, and goes on until each was taken.

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

/** How often usage becomes meter events: at most one an account, a month and this time. */
const METER_CUT_EVERY_MS = 60_000;
/** How often events that wait are looked for. */
const METER_POLL_MS = 5000;
/** For one call that reports an event. */
const METER_CALL_TIMEOUT_MS = 5000;
/** The first pause after an event that could not be reported. */
const METER_RETRY_MIN_MS = 5000;
/** Pauses grow up to this. */
const METER_RETRY_MAX_MS = 10 * 60_000;
/** The processor forgets an identifier after 24 h: one that was tried so long ago is first looked for in its sums. */
const METER_COMPARE_AFTER_MS = 20 * 60 * 60_000;
/** What reporting the rest of one account may take: shorter than the processor waits for us. */
const METER_FLUSH_MS = 8000;
/** How often the last events of an account are looked at meanwhile. */
const METER_FLUSH_LOOK_MS = 200;

export interface MeteringContext {
  readonly db: Db;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly processor: Pick<Processor, 'reportUsage' | 'meteredBytes'>;
  readonly random?: () => number;
}

/** Events whose refusal was told of; more are told of again. */
const REFUSED_MAX = 10_000;

export class Metering {
  readonly #context: Required<MeteringContext>;
  #timer: Timer | undefined;
  #round: Promise<void> | undefined;
  #nextCutAt = 0;
  /** Told of once when it begins, and once when it is over. */
  #isAway = false;
  readonly #refused = new Set<string>();

  constructor(context: MeteringContext) {
    this.#context = { ...context, random: context.random ?? Math.random };
  }

  start(): void {
    this.#timer ??= this.#context.clock.setInterval(() => this.#wake(), METER_POLL_MS);
    this.#wake();
  }

  /** An event that is being sent gets a moment; its answer may be lost, and then it is sent again after the next start. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const { clock } = this.#context;
    await withTimeout(clock, this.#round ?? Promise.resolve(), LIMITS.HTTP_STOP_GRACE_MS).catch(() => {});
  }

  /** All that one account used until now is cut and sent. Rejects when not everything was taken. */
  async flush(userId: string): Promise<void> {
    const { db, clock } = this.#context;
    const endsAt = clock.monotonic() + METER_FLUSH_MS;
    // First what waits: it keeps its month from being cut.
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
      // Another round holds one, here or in another process.
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
        // The rest would fail as well; it is looked at again soon.
        await this.#sendAll(events).catch(() => {});
        if (this.#isAway) return;
      }
    } catch (error) {
      // Whoever watches the database tells of that.
      if (!(error instanceof DatabaseAway))
        logger.error({ err: error }, 'cannot report usage to the payment processor');
    }
  }

  /** Each is tried; rejects with the first failure. */
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

/** The sums of the processor are by the minute. */
const MINUTE_MS = 60_000;

/**
 * Reports meter events to the processor. An event is sent with the same identifier until its answer is known; one whose
 * answer was lost so long ago that the processor may have forgotten the identifier is looked for in its sums first. Rejects
 * with what the processor said; when the event is tried again is noted then.
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

/** Also when its month closed since: it needs another time, and the processor may have it with the old one. */
const needsLook = ({ triedAt, month, at }: ClaimedEvent, now: number): boolean =>
  triedAt !== null && (now - triedAt >= METER_COMPARE_AFTER_MS || isClosed(month, at, now));

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
  withTimeout(clock, call, METER_CALL_TIMEOUT_MS).catch((error: unknown) => {
    throw error instanceof TimeoutError ? new Fault('BILLING_PROCESSOR_AWAY', {}, { cause: error }) : error;
  });

/** Twice as long after each failure; spread, because events fail together. */
const retryAt = (attempts: number, now: number, random: number): number => {
  const delayMs = Math.min(METER_RETRY_MAX_MS, METER_RETRY_MIN_MS * 2 ** Math.min(attempts - 1, 30));
  return Math.round(now + delayMs * (0.75 + random / 2));
};
