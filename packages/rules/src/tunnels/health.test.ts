import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HealthReport, ProbeStreak } from './health.ts';

const UP = { healthy: true } as const;
const down = (consecutiveFailures: number, reason = 'refused'): HealthReport => ({
  healthy: false,
  reason,
  consecutiveFailures,
});

/** Feeds probe results (`+` succeeds, `-` fails) to a streak, and returns the report after each result. */
const tell = (results: string, maxFailed: number): (HealthReport | null)[] => {
  const streak = new ProbeStreak({ maxFailed });
  return [...results].map((result) => (result === '+' ? streak.succeeded() : streak.failed('refused')));
};

describe('the health of a local service is reported', () => {
  it.each([
    ['at the first success', '+', 3, [UP]],
    ['for the first of several successes', '+++', 3, [UP, null, null]],
    ['after the maximum of failures in a row', '+---', 3, [UP, null, null, down(3)]],
    ['after the maximum of failures of a service that was never healthy', '---', 3, [null, null, down(3)]],
    ['only once for further failures', '-----', 3, [null, null, down(3), null, null]],
    ['not at all if a success interrupts the failures', '+--+--+', 3, [UP, null, null, null, null, null, null]],
    ['at the first success after reported failures', '---+', 3, [null, null, down(3), UP]],
    ['at the first success after unreported failures', '--+', 3, [null, null, UP]],
    ['at every change if one failure is enough', '+-+-', 1, [UP, down(1), UP, down(1)]],
  ] as const)('%s', (_, results, maxFailed, told) => {
    expect(tell(results, maxFailed)).toEqual(told);
  });

  it('again to an edge that has forgotten it, with the current count and reason', () => {
    const streak = new ProbeStreak({ maxFailed: 2 });
    expect([streak.health, streak.toldAnew()]).toEqual(['unknown', null]);
    streak.failed('refused');
    expect([streak.health, streak.toldAnew()]).toEqual(['unknown', null]);
    streak.succeeded();
    streak.failed('refused');
    expect([streak.health, streak.toldAnew()]).toEqual(['healthy', UP]);
    streak.failed('refused');
    streak.failed('status 503');
    expect([streak.health, streak.toldAnew()]).toEqual(['unhealthy', down(3, 'status 503')]);
    expect(streak.toldAnew()).toEqual(down(3, 'status 503'));
  });
});

describe('any sequence of health probes', () => {
  /** Naive model that reads all earlier results from the beginning on each call. */
  const model = (past: readonly boolean[], maxFailed: number): { health: string; failures: number } => {
    let health = 'unknown';
    past.forEach((ok, index) => {
      if (ok) health = 'healthy';
      const row = past.slice(Math.max(0, index - maxFailed + 1), index + 1);
      if (row.length === maxFailed && !row.includes(true)) health = 'unhealthy';
    });
    return { health, failures: past.length - 1 - past.lastIndexOf(true) };
  };

  it('is reported like a model that re-reads all earlier results, and only when the health changes', () => {
    const steps = fc.array(fc.constantFrom('ok', 'ok', 'failed', 'failed', 'failed', 'anew'), {
      maxLength: 60,
      size: 'max',
    });
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 5 }), (moves, maxFailed) => {
        const streak = new ProbeStreak({ maxFailed });
        const past: boolean[] = [];
        for (const move of moves) {
          const before = model(past, maxFailed);
          if (move !== 'anew') past.push(move === 'ok');
          const now = model(past, maxFailed);
          const result = (): HealthReport | null =>
            move === 'ok' ? streak.succeeded() : streak.failed(`n${past.length}`);
          const told = move === 'anew' ? streak.toldAnew() : result();
          expect(streak.health).toBe(now.health);
          const isNews = move === 'anew' ? now.health !== 'unknown' : now.health !== before.health;
          expect(told === null).toBe(!isNews);
          if (told !== null) expect(told.healthy ? 'healthy' : 'unhealthy').toBe(now.health);
          if (told?.healthy === false) {
            expect(told).toEqual(down(now.failures, `n${past.length}`));
            expect(told.consecutiveFailures).toBeGreaterThanOrEqual(maxFailed);
          }
        }
      }),
    );
  });
});
