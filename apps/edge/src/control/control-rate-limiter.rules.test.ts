import { describe, expect, it } from 'vitest';
import { accountBucketsOf, ControlRateLimiter, type ControlRateLimits } from './control-rate-limiter.rules.ts';

const RULES: ControlRateLimits = {
  connection: { perSecond: 100, burst: 400 },
  account: { perSecond: 400, burst: 1600 },
  perTurn: 64,
  pauseMinMs: 50,
};

const paceOf = (accounts = accountBucketsOf(RULES)) => new ControlRateLimiter(RULES, accounts);

/** Number of frames of the given weight accepted at the time `now`, over as many turns as needed. */
const takenAt = (pace: ControlRateLimiter, now: number, weight: number): number => {
  for (let taken = 0; ; ) {
    const { kind } = pace.next(now);
    if (kind === 'wait') return taken;
    if (kind === 'next-turn') pace.turnOver();
    else {
      pace.charge(weight, now);
      taken += 1;
    }
  }
};

describe('a control connection', () => {
  it('can send a burst of 400 frames at once, then 100 frames per second', () => {
    const pace = paceOf();
    expect(takenAt(pace, 0, 1)).toBe(400);
    expect(pace.next(0)).toEqual({ kind: 'wait', ms: 50 });
    expect([takenAt(pace, 1000, 1), takenAt(pace, 1500, 1), takenAt(pace, 60_000, 1)]).toEqual([100, 50, 400]);
  });

  it('can send a handshake and 100 registrations at once', () => {
    const pace = paceOf();
    pace.charge(1, 0);
    expect(takenAt(pace, 0, 4)).toBe(100);
  });

  it('can send an expensive frame with one token left, and pays the rest later', () => {
    const pace = paceOf();
    expect(takenAt(pace, 0, 5)).toBe(80);
    // No token is left. After 10 ms there is one token: a frame of weight 5 is accepted, and four tokens are owed.
    expect(takenAt(pace, 10, 5)).toBe(1);
    expect(pace.next(10)).toEqual({ kind: 'wait', ms: 50 });
    expect(takenAt(pace, 59, 5)).toBe(0);
    expect(takenAt(pace, 60, 5)).toBe(1);
  });

  it('is limited to 64 frames per turn of the event loop', () => {
    const pace = paceOf();
    for (let n = 0; n < 64; n += 1) {
      expect(pace.next(0).kind).toBe('take');
      pace.charge(1, 0);
    }
    expect(pace.next(0).kind).toBe('next-turn');
    pace.turnOver();
    expect(pace.next(0).kind).toBe('take');
  });

  it('is limited to one long frame per turn, regardless of saved tokens', () => {
    const pace = paceOf();
    pace.charge(1, 0, 90);
    expect(pace.next(0).kind).toBe('next-turn');
    pace.turnOver();
    expect(pace.next(0).kind).toBe('take');
  });
});

describe('the connections of an account', () => {
  it('share a burst of 1600 frames; another account has a separate burst', () => {
    const accounts = accountBucketsOf(RULES);
    const paces = Array.from({ length: 10 }, () => paceOf(accounts));
    for (const pace of paces) pace.chargeTo('alice');
    expect(paces.map((pace) => takenAt(pace, 0, 1)).reduce((sum, n) => sum + n)).toBe(1600);
    expect(takenAt(paceOf(accounts), 0, 1)).toBe(400);
    const bob = paceOf(accounts);
    bob.chargeTo('bob');
    expect(takenAt(bob, 0, 1)).toBe(400);
  });

  it('get no new tokens by reconnecting', () => {
    const accounts = accountBucketsOf(RULES);
    for (let n = 0; n < 4; n += 1) {
      const pace = paceOf(accounts);
      pace.chargeTo('alice');
      expect(takenAt(pace, 0, 1)).toBe(400);
    }
    const late = paceOf(accounts);
    late.chargeTo('alice');
    expect(takenAt(late, 0, 1)).toBe(0);
    expect(takenAt(late, 4000, 1)).toBe(400);
  });
});

it('random frames never exceed burst and rate, and no connection waits longer than 50 ms', () => {
  let seed = 7;
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  for (let run = 0; run < 8; run += 1) {
    const accounts = accountBucketsOf(RULES);
    const paces = Array.from({ length: 8 }, () => new ControlRateLimiter(RULES, accounts));
    for (const pace of paces) pace.chargeTo('alice');
    const spent = paces.map(() => 0);
    let now = 0;
    for (let step = 0; step < 2000; step += 1) {
      now += random() < 0.3 ? Math.floor(random() * 40) : 0;
      const at = Math.floor(random() * paces.length);
      const pace = paces[at] as ControlRateLimiter;
      const verdict = pace.next(now);
      if (verdict.kind === 'next-turn') pace.turnOver();
      if (verdict.kind === 'wait') {
        // A connection owes at most the rest of its most expensive frame.
        expect(verdict.ms).toBeLessThanOrEqual(50);
        continue;
      }
      if (verdict.kind !== 'take') continue;
      const weight = [1, 4, 5][Math.floor(random() * 3)] as number;
      pace.charge(weight, now);
      spent[at] = (spent[at] as number) + weight;
      expect(spent[at]).toBeLessThan(400 + now / 10 + 5);
      expect(spent.reduce((sum, n) => sum + n)).toBeLessThan(1600 + (now * 4) / 10 + 5);
    }
  }
});
