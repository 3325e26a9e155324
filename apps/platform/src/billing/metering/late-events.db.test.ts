import { Fault } from '@tunnel/errors';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NOON } from '../../services/edges/link.fixture.ts';
import { type MeteredAccount, MeteringFixture } from './metering.fixture.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const JUNE_ENDS = Date.UTC(2030, 6, 1);

let fixture: MeteringFixture;
let account: MeteredAccount;
beforeEach(async () => {
  fixture = await MeteringFixture.create();
  account = await fixture.addAccount();
});
afterEach(() => fixture.close());

const total = () => fixture.processor.totalOf(account.customerId);

/** Sends the waiting event once; the sending process then dies during the call. */
const dieInCall = async (mood: 'hangs after taking' | 'hangs before taking'): Promise<void> => {
  fixture.processor.mood = mood;
  const before = fixture.processor.calls.length;
  fixture.metering(new FakeClock(fixture.clock.now())).start();
  await eventually(() => expect(fixture.processor.calls).toHaveLength(before + 1));
  fixture.processor.mood = 'takes';
};

describe('a usage event first sent 21 hours ago without a response', () => {
  beforeEach(() => fixture.use(account, 1000));

  it("is not sent again if the processor's totals include it", async () => {
    await dieInCall('hangs after taking');
    fixture.clock.setWallClock(NOON + 21 * HOUR);
    await fixture.metering().flush(account.userId);
    await fixture.allTaken();
    expect(fixture.processor.looks).toEqual([{ customerId: account.customerId, from: NOON, to: NOON + MINUTE }]);
    expect(fixture.processor.calls).toHaveLength(1);
    expect(total()).toBe(1000);
  });

  it('is not counted twice even after the processor forgot its identifier', async () => {
    await dieInCall('hangs after taking');
    fixture.clock.setWallClock(NOON + 30 * 24 * HOUR);
    await fixture.metering().flush(account.userId);
    expect(total()).toBe(1000);
  });

  it('is sent again if the totals lack it, and then retried for 20 more hours without a check', async () => {
    await dieInCall('hangs before taking');
    fixture.clock.setWallClock(NOON + 21 * HOUR);
    await dieInCall('hangs before taking');
    expect(fixture.processor.looks).toHaveLength(1);
    fixture.clock.setWallClock(NOON + 40 * HOUR);
    await fixture.metering().flush(account.userId);
    expect(fixture.processor.looks).toHaveLength(1);
    expect(fixture.processor.calls.map(({ at }) => at)).toEqual([NOON, NOON, NOON]);
    expect(total()).toBe(1000);
  });

  it('is told apart from other events of the same minute', async () => {
    await fixture.metering().flush(account.userId);
    await fixture.use(account, 300);
    await dieInCall('hangs before taking');
    fixture.clock.setWallClock(NOON + 21 * HOUR);
    await fixture.metering().flush(account.userId);
    expect(fixture.processor.looks).toHaveLength(1);
    expect(total()).toBe(1300);
  });

  it("waits while the processor's totals are unavailable", async () => {
    await dieInCall('hangs after taking');
    fixture.clock.setWallClock(NOON + 21 * HOUR);
    fixture.processor.mood = 'is away';
    await expect(fixture.metering().flush(account.userId)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
    expect(fixture.processor.calls).toHaveLength(1);
    fixture.processor.mood = 'takes';
    await fixture.metering().flush(account.userId);
    expect(total()).toBe(1000);
  });
});

describe('usage of a past month', () => {
  it('is dated to the end of that month while its invoice is open', async () => {
    fixture.clock.setWallClock(JUNE_ENDS + 54 * MINUTE);
    await fixture.use(account, 10, '2030-06');
    await fixture.metering().flush(account.userId);
    expect(fixture.processor.calls).toMatchObject([{ at: JUNE_ENDS - 1, bytes: 10 }]);
  });

  it('is dated to now once the invoice is closed, so that the next invoice includes it', async () => {
    fixture.clock.setWallClock(JUNE_ENDS + 55 * MINUTE);
    await fixture.use(account, 10, '2030-06');
    await fixture.metering().flush(account.userId);
    expect(fixture.processor.calls).toMatchObject([{ at: JUNE_ENDS + 55 * MINUTE, bytes: 10 }]);
  });

  it('is looked up at the processor before its date changes', async () => {
    fixture.clock.setWallClock(JUNE_ENDS + 50 * MINUTE);
    await fixture.use(account, 10, '2030-06');
    await dieInCall('hangs after taking');
    fixture.clock.setWallClock(JUNE_ENDS + 56 * MINUTE);
    await fixture.metering().flush(account.userId);
    expect(fixture.processor.looks).toEqual([
      { customerId: account.customerId, from: JUNE_ENDS - MINUTE, to: JUNE_ENDS },
    ]);
    expect(fixture.processor.calls).toHaveLength(1);
    await fixture.use(account, 5, '2030-06');
    fixture.processor.mood = 'is away';
    fixture.clock.setWallClock(JUNE_ENDS + 54 * MINUTE);
    await expect(fixture.metering().flush(account.userId)).rejects.toThrow(Fault);
    fixture.processor.mood = 'takes';
    fixture.clock.setWallClock(JUNE_ENDS + 57 * MINUTE);
    await fixture.metering().flush(account.userId);
    expect(fixture.processor.calls.slice(1).map(({ at }) => at)).toEqual([JUNE_ENDS - 1, JUNE_ENDS + 57 * MINUTE]);
    expect(total()).toBe(15);
  });
});

describe('flushing the usage of one account', () => {
  it('sends waiting events, even before their retry time, and usage without an event', async () => {
    const other = await fixture.addAccount();
    await fixture.use(account, 10);
    await fixture.use(other, 1);
    fixture.processor.mood = 'is away';
    const metering = fixture.metering();
    await expect(metering.flush(account.userId)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
    await fixture.use(account, 5);
    fixture.processor.mood = 'takes';
    await metering.flush(account.userId);
    expect(total()).toBe(15);
    expect(fixture.processor.totalOf(other.customerId)).toBe(0);
  });

  it('rejects if the processor refuses the usage', async () => {
    await fixture.use(account, 10);
    fixture.processor.mood = 'refuses';
    await expect(fixture.metering().flush(account.userId)).rejects.toMatchObject({ code: 'BILLING_PROCESSOR_REFUSED' });
  });

  it('waits for another process that is sending the event, and sends it after 6 seconds of silence', async () => {
    await fixture.use(account, 10);
    await dieInCall('hangs after taking');
    let isOver = false;
    const flushed = fixture
      .metering()
      .flush(account.userId)
      .then(() => {
        isOver = true;
      });
    await eventually(async () => {
      await fixture.clock.advance(200);
      expect(isOver).toBe(true);
    });
    await flushed;
    expect(fixture.clock.now()).toBeGreaterThanOrEqual(NOON + 6000);
    expect(fixture.processor.calls).toHaveLength(2);
    expect(total()).toBe(10);
  });

  it('rejects if a call to the processor times out', async () => {
    await fixture.use(account, 10);
    fixture.processor.mood = 'hangs before taking';
    let end: unknown = null;
    const flushed = fixture.metering().flush(account.userId);
    void flushed.catch((error: unknown) => {
      end = error;
    });
    await eventually(async () => {
      await fixture.clock.advance(500);
      expect(end).toMatchObject({ code: 'BILLING_PROCESSOR_AWAY' });
    });
  });

  it('makes no call for an account without usage', async () => {
    await fixture.metering().flush(account.userId);
    expect(fixture.processor.calls).toEqual([]);
  });
});
