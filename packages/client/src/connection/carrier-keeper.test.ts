import type { Carrier } from '@tunnel/mux';
import { createLogger } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { beforeEach, describe, expect, it } from 'vitest';
import { CARRIER_SURPLUS_MS } from './carrier-count.rules.ts';
import { CarrierKeeper } from './carrier-keeper.ts';

const carrier = { destroy: () => {} } as unknown as Carrier;

let clock: FakeClock;
let dialled: string[];
let asked: number;
let failing: boolean;
let adopted: number;
let spare: number | null;
let retired: number[];
let keeper: CarrierKeeper;

beforeEach(() => {
  clock = new FakeClock();
  dialled = [];
  asked = 0;
  failing = false;
  adopted = 0;
  spare = null;
  retired = [];
  keeper = new CarrierKeeper({
    count: 3,
    clock,
    random: () => 0.999,
    logger: createLogger({ level: 'silent', format: 'json' }),
    dial: async (token) => {
      dialled.push(token);
      if (failing) throw new Error('refused');
      return carrier;
    },
    adopt: () => {
      adopted += 1;
      return adopted;
    },
    requestTokens: (count) => {
      asked += count;
    },
    spareCarrier: () => spare,
    retireCarrier: (carrierId) => {
      retired.push(carrierId);
      // The session reports a retired carrier like a lost carrier.
      keeper.onCarrierLost(carrierId);
    },
  });
});

describe('CarrierKeeper', () => {
  it('dials with the tokens it gets and requests the missing tokens', async () => {
    keeper.start(['a']);
    await clock.advance(0);
    expect(dialled).toEqual(['a']);
    expect(asked).toBe(1);
    keeper.onTokens(['b', 'one too many']);
    await clock.advance(0);
    expect(dialled).toEqual(['a', 'b']);
    expect(adopted).toBe(2);
  });

  it('opens further carriers when streams need them, and closes spare carriers a minute later', async () => {
    keeper.start(['a', 'b', 'c']);
    await clock.advance(0);
    expect([adopted, asked]).toEqual([2, 0]);
    keeper.fit(2, clock.monotonic());
    keeper.fit(2, clock.monotonic());
    expect(asked).toBe(1);
    keeper.onTokens(['d']);
    await clock.advance(0);
    expect([adopted, dialled]).toEqual([3, ['a', 'b', 'd']]);
    await clock.advance(CARRIER_SURPLUS_MS);
    keeper.fit(0, clock.monotonic());
    expect(retired).toEqual([]);
    spare = 1;
    keeper.fit(0, clock.monotonic());
    keeper.fit(0, clock.monotonic());
    expect(retired).toEqual([1]);
    await clock.advance(60_000);
    expect(asked).toBe(1);
  });

  it('keeps no slot waiting for a carrier that is no longer needed', async () => {
    keeper.start(['a', 'b']);
    await clock.advance(0);
    keeper.fit(5, clock.monotonic());
    await clock.advance(CARRIER_SURPLUS_MS);
    keeper.fit(0, clock.monotonic());
    const before = asked;
    await clock.advance(60_000);
    expect([asked, clock.pendingTimers]).toEqual([before, 0]);
  });

  it('replaces a lost carrier with a fresh token after a pause', async () => {
    keeper.start(['a', 'b', 'c']);
    await clock.advance(0);
    keeper.onCarrierLost(2);
    expect(asked).toBe(0);
    await clock.advance(1000);
    expect(asked).toBe(1);
    keeper.onTokens(['d']);
    await clock.advance(0);
    expect(adopted).toBe(3);
  });

  it('requests tokens less often while every dial fails, but never stops', async () => {
    failing = true;
    keeper.start(['a']);
    let answered = 0;
    /** Counts the token requests within ten seconds when the edge answers every request at once. */
    const askedInTenSeconds = async (): Promise<number> => {
      const before = asked;
      for (let at = 0; at < 10_000; at += 100) {
        keeper.onTokens(Array.from({ length: asked - answered }, () => 'x'));
        answered = asked;
        await clock.advance(100);
      }
      return asked - before;
    };
    const early = await askedInTenSeconds();
    for (let round = 0; round < 5; round += 1) await askedInTenSeconds();
    const late = await askedInTenSeconds();
    expect(late).toBeLessThan(early / 2);
    expect(late).toBeGreaterThan(0);
  });

  it('requests tokens again when the edge does not respond', async () => {
    keeper.start(['a']);
    await clock.advance(11_000);
    expect(asked).toBeGreaterThanOrEqual(2);
  });

  it('ignores the loss of a carrier that belongs to another connection', async () => {
    keeper.start(['a', 'b', 'c']);
    await clock.advance(0);
    keeper.onCarrierLost(99);
    await clock.advance(60_000);
    expect(asked).toBe(0);
  });

  it('leaves no timer and dials no token after it is stopped', async () => {
    keeper.start(['a']);
    await clock.advance(0);
    keeper.onCarrierLost(1);
    keeper.stop();
    keeper.onTokens(['late']);
    await clock.advance(60_000);
    expect(dialled).toEqual(['a']);
    expect(clock.pendingTimers).toBe(0);
  });
});
