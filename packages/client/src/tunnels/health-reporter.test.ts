import type { HealthReport } from '@tunnel/rules/tunnels';
import { FakeClock } from '@tunnel/testkit';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ProbeResult } from '../local/probe.ts';
import { Prober } from './health-reporter.ts';

interface Look {
  readonly at: number;
  readonly signal: AbortSignal;
  readonly answer: (result: ProbeResult) => void;
}

let clock: FakeClock;
let looks: Look[];
let told: HealthReport[];
let random: number;

beforeEach(() => {
  clock = new FakeClock();
  looks = [];
  told = [];
  random = 0.5;
});

const makeProber = (maxFailed = 2): Prober =>
  new Prober({
    probe: (signal) =>
      new Promise((answer) => {
        looks.push({ at: clock.monotonic(), signal, answer });
      }),
    intervalMs: 10_000,
    maxFailed,
    clock,
    random: () => random,
    onChange: (report) => told.push(report),
  });

const GOOD: ProbeResult = { ok: true };
const BAD: ProbeResult = { ok: false, reason: 'connection refused' };

/** Ends the running probe with the given result. */
const answer = async (result: ProbeResult): Promise<void> => {
  looks.at(-1)?.answer(result);
  await clock.advance(0);
};

describe('the probe interval', () => {
  it('starts with a probe at once, and is measured from the start of the last probe', async () => {
    makeProber().start();
    expect(looks).toHaveLength(1);
    await clock.advance(3000);
    await answer(GOOD);
    await clock.advance(6999);
    expect(looks).toHaveLength(1);
    await clock.advance(1);
    expect(looks.map((look) => look.at)).toEqual([0, 10_000]);
  });

  it.each([
    [0, 9000],
    [0.5, 10_000],
    [0.999_999, 11_000],
  ])('is randomized by 10 % in both directions: random %f gives %i ms', async (chance, pauseMs) => {
    random = chance;
    makeProber().start();
    await answer(GOOD);
    await clock.advance(20_000);
    expect(Math.round(looks[1]?.at ?? 0)).toBe(pauseMs);
  });

  it('never runs two probes at once; after an overdue probe the next one starts at once', async () => {
    makeProber().start();
    await clock.advance(25_000);
    expect(looks).toHaveLength(1);
    await answer(BAD);
    expect(looks.map((look) => look.at)).toEqual([0, 25_000]);
  });

  it('does not start twice', () => {
    const prober = makeProber();
    prober.start();
    prober.start();
    expect(looks).toHaveLength(1);
  });
});

describe('health reports', () => {
  it('are sent for changes only, and the known state can be queried', async () => {
    const prober = makeProber();
    prober.start();
    expect(prober.known).toBeNull();
    for (const result of [GOOD, GOOD, BAD, GOOD, BAD, BAD, BAD, GOOD]) {
      await answer(result);
      await clock.advance(10_000);
    }
    expect(told).toEqual([
      { healthy: true },
      { healthy: false, reason: 'connection refused', consecutiveFailures: 2 },
      { healthy: true },
    ]);
    expect(prober.known).toEqual({ healthy: true });
  });
});

describe('a stopped prober', () => {
  it('aborts the running probe and ignores its result', async () => {
    const prober = makeProber(1);
    prober.start();
    prober.stop();
    expect(looks[0]?.signal.aborted).toBe(true);
    await answer(BAD);
    await clock.advance(60_000);
    expect([looks.length, told, clock.pendingTimers]).toEqual([1, [], 0]);
  });

  it('leaves no timer, even if stopped inside a health report', async () => {
    const prober = makeProber();
    prober.start();
    await answer(GOOD);
    expect(clock.pendingTimers).toBe(1);
    prober.stop();
    expect(clock.pendingTimers).toBe(0);

    const other: Prober = new Prober({
      probe: async () => BAD,
      intervalMs: 1000,
      maxFailed: 1,
      clock,
      random: () => 0.5,
      onChange: () => other.stop(),
    });
    other.start();
    await clock.advance(0);
    expect(clock.pendingTimers).toBe(0);
  });
});
