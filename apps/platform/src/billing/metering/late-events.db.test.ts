import { Fault } from '@tunnel/errors';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NOON } from '../../services/edges/link.fixture.ts';
import { type MeteredAccount, MeteringWorld } from './metering-world.fixture.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const JUNE_ENDS = Date.UTC(2030, 6, 1);

let world: MeteringWorld;
let account: MeteredAccount;
beforeEach(async () => {
  world = await MeteringWorld.create();
  account = await world.addAccount();
});
afterEach(() => world.close());

const total = () => world.processor.totalOf(account.customerId);

/** Sent once; the process then dies in the call. */
const dieInCall = async (mood: 'hangs after taking' | 'hangs before taking'): Promise<void> => {
  world.processor.mood = mood;
  const before = world.processor.calls.length;
  world.metering(new FakeClock(world.clock.now())).start();
  await eventually(() => expect(world.processor.calls).toHaveLength(before + 1));
  world.processor.mood = 'takes';
};

describe('an event that was first tried 21 hours ago, with no answer', () => {
  beforeEach(() => world.use(account, 1000));

  it('is not sent again when the sums of the processor have it', async () => {
    await dieInCall('hangs after taking');
    world.clock.setWallClock(NOON + 21 * HOUR);
    await world.metering().flush(account.userId);
    await world.allTaken();
    expect(world.processor.looks).toEqual([{ customerId: account.customerId, from: NOON, to: NOON + MINUTE }]);
    expect(world.processor.calls).toHaveLength(1);
    expect(total()).toBe(1000);
  });

  it('is not counted twice even when the processor forgot its identifier', async () => {
    await dieInCall('hangs after taking');
    world.clock.setWallClock(NOON + 30 * 24 * HOUR);
    await world.metering().flush(account.userId);
    expect(total()).toBe(1000);
  });

  it('is sent again when they do not have it, and then has 20 hours more', async () => {
    await dieInCall('hangs before taking');
    world.clock.setWallClock(NOON + 21 * HOUR);
    await dieInCall('hangs before taking');
    expect(world.processor.looks).toHaveLength(1);
    world.clock.setWallClock(NOON + 40 * HOUR);
    await world.metering().flush(account.userId);
    expect(world.processor.looks).toHaveLength(1);
    expect(world.processor.calls.map(({ at }) => at)).toEqual([NOON, NOON, NOON]);
    expect(total()).toBe(1000);
  });

  it('is told from others of the same minute', async () => {
    await world.metering().flush(account.userId);
    await world.use(account, 300);
    await dieInCall('hangs before taking');
    world.clock.setWallClock(NOON + 21 * HOUR);
    await world.metering().flush(account.userId);
    expect(world.processor.looks).toHaveLength(1);
    expect(total()).toBe(1300);
  });

  it('waits while the processor cannot be asked', async () => {
    await dieInCall('hangs after taking');
    world.clock.setWallClock(NOON + 21 * HOUR);
    world.processor.mood = 'is away';
    await expect(world.metering().flush(account.userId)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
    expect(world.processor.calls).toHaveLength(1);
    world.processor.mood = 'takes';
    await world.metering().flush(account.userId);
    expect(total()).toBe(1000);
  });
});

describe('usage of a month that is over', () => {
  it('carries a time of that month while its invoice is open', async () => {
    world.clock.setWallClock(JUNE_ENDS + 54 * MINUTE);
    await world.use(account, 10, '2030-06');
    await world.metering().flush(account.userId);
    expect(world.processor.calls).toMatchObject([{ at: JUNE_ENDS - 1, bytes: 10 }]);
  });

  it('carries the time of now after that, so that the next invoice has it', async () => {
    world.clock.setWallClock(JUNE_ENDS + 55 * MINUTE);
    await world.use(account, 10, '2030-06');
    await world.metering().flush(account.userId);
    expect(world.processor.calls).toMatchObject([{ at: JUNE_ENDS + 55 * MINUTE, bytes: 10 }]);
  });

  it('is looked for before it gets another time', async () => {
    world.clock.setWallClock(JUNE_ENDS + 50 * MINUTE);
    await world.use(account, 10, '2030-06');
    await dieInCall('hangs after taking');
    world.clock.setWallClock(JUNE_ENDS + 56 * MINUTE);
    await world.metering().flush(account.userId);
    expect(world.processor.looks).toEqual([
      { customerId: account.customerId, from: JUNE_ENDS - MINUTE, to: JUNE_ENDS },
    ]);
    expect(world.processor.calls).toHaveLength(1);
    await world.use(account, 5, '2030-06');
    world.processor.mood = 'is away';
    world.clock.setWallClock(JUNE_ENDS + 54 * MINUTE);
    await expect(world.metering().flush(account.userId)).rejects.toThrow(Fault);
    world.processor.mood = 'takes';
    world.clock.setWallClock(JUNE_ENDS + 57 * MINUTE);
    await world.metering().flush(account.userId);
    expect(world.processor.calls.slice(1).map(({ at }) => at)).toEqual([JUNE_ENDS - 1, JUNE_ENDS + 57 * MINUTE]);
    expect(total()).toBe(15);
  });
});

describe('reporting all of one account now', () => {
  it('takes what waits, due or not, and what was not cut yet', async () => {
    const other = await world.addAccount();
    await world.use(account, 10);
    await world.use(other, 1);
    world.processor.mood = 'is away';
    const metering = world.metering();
    await expect(metering.flush(account.userId)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
    await world.use(account, 5);
    world.processor.mood = 'takes';
    await metering.flush(account.userId);
    expect(total()).toBe(15);
    expect(world.processor.totalOf(other.customerId)).toBe(0);
  });

  it('rejects when the processor refuses', async () => {
    await world.use(account, 10);
    world.processor.mood = 'refuses';
    await expect(world.metering().flush(account.userId)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_REFUSED' });
  });

  it('waits for whoever is sending one, and takes it over when that one is not heard of any more', async () => {
    await world.use(account, 10);
    await dieInCall('hangs after taking');
    let isOver = false;
    const flushed = world
      .metering()
      .flush(account.userId)
      .then(() => {
        isOver = true;
      });
    await eventually(async () => {
      await world.clock.advance(200);
      expect(isOver).toBe(true);
    });
    await flushed;
    expect(world.clock.now()).toBeGreaterThanOrEqual(NOON + 6000);
    expect(world.processor.calls).toHaveLength(2);
    expect(total()).toBe(10);
  });

  it('rejects when a call takes too long', async () => {
    await world.use(account, 10);
    world.processor.mood = 'hangs before taking';
    let end: unknown = null;
    const flushed = world.metering().flush(account.userId);
    void flushed.catch((error: unknown) => {
      end = error;
    });
    await eventually(async () => {
      await world.clock.advance(500);
      expect(end).toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
    });
  });

  it('has nothing to do for whoever used nothing', async () => {
    await world.metering().flush(account.userId);
    expect(world.processor.calls).toEqual([]);
  });
});
