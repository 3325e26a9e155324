import { createLogger, type Logger, systemClock } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NOON } from '../../services/edges/link.fixture.ts';
import { claimEvents, cutUsage } from './meter-events.ts';
import { MeteringFixture } from './metering.fixture.ts';
import { sendEvent } from './metering.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

let fixture: MeteringFixture;
beforeEach(async () => {
  fixture = await MeteringFixture.create();
});
afterEach(() => fixture.close());

/** Advances the clock in poll steps until the check passes. Small steps, because the clock must not run ahead of the database. */
const inTime = (check: () => void | Promise<void>, step = 5 * SECOND) =>
  eventually(async () => {
    await fixture.clock.advance(step);
    await check();
  });

describe('metered usage', () => {
  it('is reported at startup and then every minute', async () => {
    const account = await fixture.addAccount();
    await fixture.use(account, 1000);
    fixture.metering().start();
    await fixture.allTaken();
    expect(fixture.processor.calls).toEqual([
      { identifier: `${account.userId}-2030-06-1`, customerId: account.customerId, bytes: 1000, at: NOON },
    ]);
    await fixture.use(account, 24);
    await fixture.clock.advance(55 * SECOND);
    expect(fixture.processor.calls).toHaveLength(1);
    await inTime(() => expect(fixture.processor.totalOf(account.customerId)).toBe(1024));
  });

  it('of 45 accounts is reported to the right customers, in batches', async () => {
    const accounts = await Promise.all(Array.from({ length: 45 }, () => fixture.addAccount()));
    for (const [index, account] of accounts.entries()) await fixture.use(account, index + 1);
    fixture.metering().start();
    await fixture.allTaken();
    const totals = accounts.map(({ customerId }) => fixture.processor.totalOf(customerId));
    expect(totals).toEqual(accounts.map((_none, index) => index + 1));
  });

  it('is reported once, even if three processes report it while more comes in', async () => {
    const accounts = await Promise.all(Array.from({ length: 8 }, () => fixture.addAccount()));
    // Uses the real clock, because the processes wait for each other.
    const processes = [1, 2, 3].map(() => fixture.metering(systemClock));
    for (let round = 0; round < 10; round += 1) {
      await Promise.all([
        ...accounts.map((account) => fixture.use(account, 10)),
        ...processes.flatMap((process) => accounts.slice(0, 3).map(({ userId }) => process.flush(userId))),
        ...(round === 5 ? processes.map(async (process) => process.start()) : []),
      ]);
    }
    for (const { userId } of accounts) await processes[0]?.flush(userId);
    const identifiers = fixture.processor.calls.map(({ identifier }) => identifier);
    expect(new Set(identifiers).size).toBe(identifiers.length);
    expect(accounts.map(({ customerId }) => fixture.processor.totalOf(customerId))).toEqual(accounts.map(() => 100));
  });
});

describe('a failing payment processor', () => {
  it('gets retries with the same identifier at growing intervals, without end', async () => {
    const { db, clock, processor } = fixture;
    const account = await fixture.addAccount();
    await fixture.use(account, 10);
    await cutUsage(db, { now: clock.now() });
    const send = async (): Promise<void> => {
      const [event, ...others] = await claimEvents(db, { now: clock.now() });
      expect([event?.identifier, others]).toEqual([`${account.userId}-2030-06-1`, []]);
      if (event !== undefined) await sendEvent({ db, clock, processor, random: () => 0.5 }, event);
    };
    processor.mood = 'is away';
    const waits: number[] = [];
    for (let attempts = 1; attempts <= 10; attempts += 1) {
      await expect(send()).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
      const [event] = await fixture.events();
      waits.push((event?.next_try_at.getTime() ?? 0) - clock.now());
      await clock.advance((waits.at(-1) ?? 0) - 1);
      expect(await claimEvents(db, { now: clock.now() })).toEqual([]);
      await clock.advance(1);
    }
    expect(waits.map((ms) => ms / SECOND)).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
    await db.updateTable('meter_events').set({ attempts: 100_000 }).execute();
    await clock.advance(30 * 24 * HOUR);
    processor.mood = 'takes';
    await send();
    await fixture.allTaken();
    expect(processor.totalOf(account.customerId)).toBe(10);
  });

  it('leaves one unsent event per account after a day, and gets the full usage once available', async () => {
    const accounts = [await fixture.addAccount(), await fixture.addAccount()];
    fixture.processor.mood = 'is away';
    const metering = fixture.metering();
    metering.start();
    for (let hour = 0; hour < 24; hour += 1) {
      for (const account of accounts) await fixture.use(account, 1_000_000_007);
      await fixture.clock.advance(HOUR);
    }
    await fixture.settled((events) => expect(events).toHaveLength(2));
    fixture.processor.mood = 'takes';
    await inTime(() => {
      for (const { customerId } of accounts) expect(fixture.processor.totalOf(customerId)).toBe(24 * 1_000_000_007);
    }, 10 * MINUTE);
    await fixture.allTaken();
    expect(await fixture.events()).toHaveLength(4);
  });

  it('is logged once when it fails and once when it recovers', async () => {
    const lines: string[] = [];
    const note = (_fields: object, message: string): void => void lines.push(message);
    const silent = createLogger({ level: 'silent', format: 'json' });
    const logger: Logger = { ...silent, warn: note, error: note, info: note };
    const account = await fixture.addAccount();
    await fixture.use(account, 10);
    fixture.processor.mood = 'is away';
    fixture.metering(fixture.clock, logger).start();
    await inTime(() => expect(fixture.processor.calls.length).toBeGreaterThan(3));
    fixture.processor.mood = 'takes';
    await inTime(() => expect(fixture.processor.totalOf(account.customerId)).toBe(10), MINUTE);
    await fixture.allTaken();
    await eventually(() => expect(lines).toHaveLength(2));
    expect(lines).toEqual([
      'cannot report usage; usage is kept until the payment processor is available again',
      'the payment processor accepts usage again',
    ]);
  });

  it('is logged once while it refuses an account, and gets the usage later', async () => {
    const lines: string[] = [];
    const silent = createLogger({ level: 'silent', format: 'json' });
    const logger: Logger = { ...silent, error: (_fields, message) => void lines.push(message) };
    const account = await fixture.addAccount();
    await fixture.use(account, 10);
    fixture.processor.mood = 'refuses';
    fixture.metering(fixture.clock, logger).start();
    await inTime(() => expect(fixture.processor.calls.length).toBeGreaterThan(2));
    expect(lines).toEqual(['the payment processor rejected usage; retrying']);
    fixture.processor.mood = 'takes';
    await inTime(() => expect(fixture.processor.totalOf(account.customerId)).toBe(10), MINUTE);
  });

  it('gets a retry after a call without a response for 5 seconds', async () => {
    const account = await fixture.addAccount();
    await fixture.use(account, 10);
    fixture.processor.mood = 'hangs before taking';
    fixture.metering().start();
    await eventually(() => expect(fixture.processor.calls).toHaveLength(1));
    fixture.processor.mood = 'takes';
    await inTime(() => expect(fixture.processor.totalOf(account.customerId)).toBe(10));
    expect(fixture.processor.calls).toHaveLength(2);
  });
});

describe('an event with a lost response', () => {
  it('is sent again with the same identifier and counted once', async () => {
    const account = await fixture.addAccount();
    await fixture.use(account, 10);
    fixture.processor.mood = 'answers to nobody';
    fixture.metering().start();
    await eventually(() => expect(fixture.processor.calls).toHaveLength(1));
    fixture.processor.mood = 'takes';
    await inTime(() => expect(fixture.processor.calls).toHaveLength(2));
    await fixture.allTaken();
    expect(fixture.processor.calls[1]).toEqual(fixture.processor.calls[0]);
    expect(fixture.processor.totalOf(account.customerId)).toBe(10);
  });

  it('is left alone for 6 seconds after its sender died, then sent by another process and counted once', async () => {
    const account = await fixture.addAccount();
    await fixture.use(account, 10);
    fixture.processor.mood = 'hangs after taking';
    fixture.metering().start();
    await eventually(() => expect(fixture.processor.calls).toHaveLength(1));
    fixture.processor.mood = 'takes';
    const clock = new FakeClock(NOON + 5999);
    fixture.metering(clock).start();
    await eventually(async () => {
      await clock.advance(1);
      expect(clock.pendingTimers).toBeGreaterThan(0);
    });
    expect(fixture.processor.calls).toHaveLength(1);
    await eventually(async () => {
      await clock.advance(5 * SECOND);
      expect(fixture.processor.calls).toHaveLength(2);
    });
    await fixture.allTaken();
    expect(fixture.processor.calls[1]?.identifier).toBe(fixture.processor.calls[0]?.identifier);
    expect(fixture.processor.totalOf(account.customerId)).toBe(10);
  });
});
