import { createLogger, type Logger, systemClock } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NOON } from '../../services/edges/link.fixture.ts';
import { claimEvents, cutUsage } from './meter-events.ts';
import { sendEvent } from './metering.ts';
import { MeteringWorld } from './metering-world.fixture.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

let world: MeteringWorld;
beforeEach(async () => {
  world = await MeteringWorld.create();
});
afterEach(() => world.close());

/** Steps of the poll, until it is so; the clock may not run ahead of the database. */
const inTime = (check: () => void | Promise<void>, step = 5 * SECOND) =>
  eventually(async () => {
    await world.clock.advance(step);
    await check();
  });

describe('usage', () => {
  it('is reported at the start and then every minute', async () => {
    const account = await world.addAccount();
    await world.use(account, 1000);
    world.metering().start();
    await world.allTaken();
    expect(world.processor.calls).toEqual([
      { identifier: `${account.userId}-2030-06-1`, customerId: account.customerId, bytes: 1000, at: NOON },
    ]);
    await world.use(account, 24);
    await world.clock.advance(55 * SECOND);
    expect(world.processor.calls).toHaveLength(1);
    await inTime(() => expect(world.processor.totalOf(account.customerId)).toBe(1024));
  });

  it('of many accounts is reported to each, in batches', async () => {
    const accounts = await Promise.all(Array.from({ length: 45 }, () => world.addAccount()));
    for (const [index, account] of accounts.entries()) await world.use(account, index + 1);
    world.metering().start();
    await world.allTaken();
    const totals = accounts.map(({ customerId }) => world.processor.totalOf(customerId));
    expect(totals).toEqual(accounts.map((_none, index) => index + 1));
  });

  it('is reported once, though three processes do it at once while it comes in', async () => {
    const accounts = await Promise.all(Array.from({ length: 8 }, () => world.addAccount()));
    // A clock that runs, because they wait for each other.
    const processes = [1, 2, 3].map(() => world.metering(systemClock));
    for (let round = 0; round < 10; round += 1) {
      await Promise.all([
        ...accounts.map((account) => world.use(account, 10)),
        ...processes.flatMap((process) => accounts.slice(0, 3).map(({ userId }) => process.flush(userId))),
        ...(round === 5 ? processes.map(async (process) => process.start()) : []),
      ]);
    }
    for (const { userId } of accounts) await processes[0]?.flush(userId);
    const identifiers = world.processor.calls.map(({ identifier }) => identifier);
    expect(new Set(identifiers).size).toBe(identifiers.length);
    expect(accounts.map(({ customerId }) => world.processor.totalOf(customerId))).toEqual(accounts.map(() => 100));
  });
});

describe('a processor that fails', () => {
  it('is asked again later and later, with the same identifier, and never given up', async () => {
    const { db, clock, processor } = world;
    const account = await world.addAccount();
    await world.use(account, 10);
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
      const [event] = await world.events();
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
    await world.allTaken();
    expect(processor.totalOf(account.customerId)).toBe(10);
  });

  it('for a whole day leaves one event an account, and gets everything when it is back', async () => {
    const accounts = [await world.addAccount(), await world.addAccount()];
    world.processor.mood = 'is away';
    const metering = world.metering();
    metering.start();
    for (let hour = 0; hour < 24; hour += 1) {
      for (const account of accounts) await world.use(account, 1_000_000_007);
      await world.clock.advance(HOUR);
    }
    await world.settled((events) => expect(events).toHaveLength(2));
    world.processor.mood = 'takes';
    await inTime(() => {
      for (const { customerId } of accounts) expect(world.processor.totalOf(customerId)).toBe(24 * 1_000_000_007);
    }, 10 * MINUTE);
    await world.allTaken();
    expect(await world.events()).toHaveLength(4);
  });

  it('is told of once, and once more when it is back', async () => {
    const lines: string[] = [];
    const note = (_fields: object, message: string): void => void lines.push(message);
    const silent = createLogger({ level: 'silent', format: 'json' });
    const logger: Logger = { ...silent, warn: note, error: note, info: note };
    const account = await world.addAccount();
    await world.use(account, 10);
    world.processor.mood = 'is away';
    world.metering(world.clock, logger).start();
    await inTime(() => expect(world.processor.calls.length).toBeGreaterThan(3));
    world.processor.mood = 'takes';
    await inTime(() => expect(world.processor.totalOf(account.customerId)).toBe(10), MINUTE);
    await world.allTaken();
    await eventually(() => expect(lines).toHaveLength(2));
    expect(lines).toEqual([
      'usage cannot be reported: it is kept until the payment processor is back',
      'the payment processor takes usage again',
    ]);
  });

  it('that refuses one account is told of once and keeps nobody else waiting', async () => {
    const lines: string[] = [];
    const silent = createLogger({ level: 'silent', format: 'json' });
    const logger: Logger = { ...silent, error: (_fields, message) => void lines.push(message) };
    const account = await world.addAccount();
    await world.use(account, 10);
    world.processor.mood = 'refuses';
    world.metering(world.clock, logger).start();
    await inTime(() => expect(world.processor.calls.length).toBeGreaterThan(2));
    expect(lines).toEqual(['the payment processor refuses to take usage; it is tried again']);
    world.processor.mood = 'takes';
    await inTime(() => expect(world.processor.totalOf(account.customerId)).toBe(10), MINUTE);
  });

  it('that hangs is waited for 5 seconds, then asked again', async () => {
    const account = await world.addAccount();
    await world.use(account, 10);
    world.processor.mood = 'hangs before taking';
    world.metering().start();
    await eventually(() => expect(world.processor.calls).toHaveLength(1));
    world.processor.mood = 'takes';
    await inTime(() => expect(world.processor.totalOf(account.customerId)).toBe(10));
    expect(world.processor.calls).toHaveLength(2);
  });
});

describe('an event whose answer was lost', () => {
  it('is sent again with the same identifier, and counted once', async () => {
    const account = await world.addAccount();
    await world.use(account, 10);
    world.processor.mood = 'answers to nobody';
    world.metering().start();
    await eventually(() => expect(world.processor.calls).toHaveLength(1));
    world.processor.mood = 'takes';
    await inTime(() => expect(world.processor.calls).toHaveLength(2));
    await world.allTaken();
    expect(world.processor.calls[1]).toEqual(world.processor.calls[0]);
    expect(world.processor.totalOf(account.customerId)).toBe(10);
  });

  it('because the process died is left to others for 6 seconds only, and counted once', async () => {
    const account = await world.addAccount();
    await world.use(account, 10);
    world.processor.mood = 'hangs after taking';
    world.metering().start();
    await eventually(() => expect(world.processor.calls).toHaveLength(1));
    world.processor.mood = 'takes';
    const clock = new FakeClock(NOON + 5999);
    world.metering(clock).start();
    await eventually(async () => {
      await clock.advance(1);
      expect(clock.pendingTimers).toBeGreaterThan(0);
    });
    expect(world.processor.calls).toHaveLength(1);
    await eventually(async () => {
      await clock.advance(5 * SECOND);
      expect(world.processor.calls).toHaveLength(2);
    });
    await world.allTaken();
    expect(world.processor.calls[1]?.identifier).toBe(world.processor.calls[0]?.identifier);
    expect(world.processor.totalOf(account.customerId)).toBe(10);
  });
});
