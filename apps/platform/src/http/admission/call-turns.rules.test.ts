import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CallerKind, type CallTurn, CallTurns, type CallTurnsOptions, LATE, TIMES } from './call-turns.rules.ts';

const OPTIONS: CallTurnsOptions = {
  atOnce: 6,
  waitingMax: 30,
  callersMax: 100,
  account: { atOnce: 4, perSecond: 10 },
  network: { atOnce: 2, perSecond: 5 },
};
const BURST = 10 * TIMES.burstSecs;

interface Made {
  readonly kind: CallerKind;
  readonly id: string;
  readonly turn: CallTurn;
  readonly enteredMs: number;
  begunMs: number | null;
  retryAfterMs: number | null;
  isOver: boolean;
}

/** Calls and their outcomes, with a clock advanced only by the test. */
class Trial {
  readonly turns: CallTurns;
  readonly calls: Made[] = [];
  nowMs = 0;

  constructor(options: Partial<CallTurnsOptions> = {}) {
    this.turns = new CallTurns({ ...OPTIONS, ...options });
  }

  enter(kind: CallerKind, id: string): Made {
    let begunMs: number | null = null;
    let retryAfterMs: number | null = null;
    let made: Made | null = null;
    const turn = this.turns.enter(kind, id, this.nowMs, {
      begin: () => {
        begunMs = this.nowMs;
        if (made !== null) made.begunMs = begunMs;
      },
      refuse: (ms) => {
        retryAfterMs = ms;
        if (made !== null) made.retryAfterMs = ms;
      },
    });
    made = { kind, id, turn, enteredMs: this.nowMs, begunMs, retryAfterMs, isOver: false };
    this.calls.push(made);
    return made;
  }

  many(count: number, kind: CallerKind, id: string): Made[] {
    return Array.from({ length: count }, () => this.enter(kind, id));
  }

  end(call: Made): void {
    call.isOver = true;
    this.turns.end(call.turn, this.nowMs);
  }

  pass(ms: number): void {
    for (let passed = 0; passed < ms; passed += 10) {
      this.nowMs += Math.min(10, ms - passed);
      this.turns.advance(this.nowMs);
    }
  }

  get running(): Made[] {
    return this.calls.filter((call) => call.begunMs !== null && !call.isOver);
  }

  get waiting(): Made[] {
    return this.calls.filter((call) => call.begunMs === null && call.retryAfterMs === null && !call.isOver);
  }

  /** Serves calls for `ms` milliseconds: in every step the running calls end and waiting calls take their places. */
  serve(ms: number, stepMs: number): void {
    for (let passed = 0; passed < ms; passed += stepMs) {
      const running = this.running;
      this.pass(stepMs);
      for (const call of running) this.end(call);
    }
  }
}

const begun = (calls: readonly Made[]): number => calls.filter(({ begunMs }) => begunMs !== null).length;

describe('calls of one caller', () => {
  it('without competition, an account or a network uses all places and has no rate limit', () => {
    for (const kind of ['account', 'network'] as const) {
      const trial = new Trial({ waitingMax: 1000 });
      const calls = trial.many(500, kind, 'a');
      expect(begun(calls)).toBe(OPTIONS.atOnce);
      trial.serve(1000, 10);
      expect(begun(calls)).toBe(500);
    }
  });

  it('a single caller leaves places free if aloneAtOnce is lower than the number of places', () => {
    const trial = new Trial({ aloneAtOnce: 3 });
    expect(begun(trial.many(20, 'network', 'a'))).toBe(3);
    expect(begun(trial.many(20, 'account', 'b'))).toBe(4);
  });

  it('a call still waiting after two seconds is refused, with the time the backlog takes as Retry-After', () => {
    const trial = new Trial();
    const calls = trial.many(20, 'account', 'a');
    trial.pass(TIMES.waitMs - 10);
    expect([begun(calls), trial.waiting.length]).toEqual([6, 14]);
    trial.pass(10);
    expect([trial.waiting.length, calls[6]?.retryAfterMs, calls[19]?.retryAfterMs]).toEqual([0, 1400, 100]);
  });
});

describe('calls beside a flood', () => {
  it('a call of another caller begins at once, whatever the flood holds', () => {
    const trial = new Trial();
    trial.many(20, 'account', 'flood');
    expect(begun([trial.enter('account', 'b')])).toBe(1);
    expect(begun([trial.enter('network', '192.0.2.1')])).toBe(1);
  });

  it('if two floods fill all places within their shares, a new network waits only for the calls in flight', () => {
    const trial = new Trial();
    trial.many(10, 'account', 'flood');
    trial.many(10, 'network', '198.51.100.1');
    const inFlight = trial.running;
    const stranger = trial.enter('network', '192.0.2.1');
    expect([inFlight.length, stranger.begunMs]).toEqual([8, null]);
    for (const call of inFlight) trial.end(call);
    expect(stranger.begunMs).toBe(0);
  });

  it("a third caller within its network's rate never waits beside two floods; a faster one does", () => {
    const longestWait = (everyMs: number): number => {
      const trial = new Trial({ waitingMax: 500 });
      let longestMs = 0;
      for (let round = 0; round < 80; round += 1) {
        const count = round === 0 ? 200 : 10;
        trial.many(count, 'account', 'flood');
        trial.many(count, 'network', '198.51.100.1');
        const stranger = trial.enter('network', '192.0.2.1');
        trial.serve(everyMs, 10);
        // From here on the floods have used up their initial burst.
        if (round > 50)
          longestMs = Math.max(longestMs, (stranger.begunMs ?? Number.POSITIVE_INFINITY) - stranger.enteredMs);
      }
      return longestMs;
    };
    // The network's rate is five calls a second, so a call every 200 ms stays within the rate.
    expect(longestWait(200)).toBe(0);
    expect(longestWait(150)).toBeGreaterThan(0);
  });

  it('a flood gets no place beyond its share while another caller waits', () => {
    const trial = new Trial();
    const flood = trial.many(20, 'account', 'flood');
    const other = trial.many(6, 'account', 'b');
    // The flood's share is 4 of 6 places, which leaves two places for the other account.
    expect([begun(flood), begun(other)]).toEqual([6, 2]);
    for (const call of flood.filter(({ begunMs }) => begunMs !== null)) trial.end(call);
    expect([begun(flood), begun(other)]).toEqual([8, 4]);
  });

  it('rate limits apply once calls have waited 100 ms: the flood is limited, the other caller is not', () => {
    const trial = new Trial({ waitingMax: 1000 });
    const flood = trial.many(900, 'account', 'flood');
    const others: Made[] = [];
    for (let passed = 0; passed < 1000; passed += 50) {
      others.push(trial.enter('account', 'b'));
      trial.serve(50, 10);
    }
    expect([begun(others), others.every(({ begunMs, enteredMs }) => begunMs === enteredMs)]).toEqual([20, true]);
    // The flood gets all places for the first 100 ms, and then its rate.
    const unbounded = (OPTIONS.atOnce * TIMES.queueStandsMs) / 10 + OPTIONS.atOnce;
    expect(begun(flood)).toBeGreaterThan(BURST);
    expect(begun(flood)).toBeLessThanOrEqual(unbounded + BURST + 10);
  });

  it('a caller over its rate is limited only while another caller competes', () => {
    const trial = new Trial({ waitingMax: 3000 });
    const flood = trial.many(2500, 'account', 'flood');
    trial.serve(500, 10);
    const alone = begun(flood);
    trial.enter('account', 'b');
    trial.serve(500, 10);
    const beside = begun(flood) - alone;
    expect([alone >= 250, beside <= 15]).toEqual([true, true]);
    trial.serve(TIMES.waitMs, 10);
    const again = trial.many(1000, 'account', 'flood');
    trial.serve(500, 10);
    expect(begun(again)).toBeGreaterThan(250);
  });

  it('calls that cannot begin in time are refused a few at a time, so that retries do not arrive together', () => {
    const trial = new Trial({ waitingMax: 3000 });
    const flood = trial.many(2000, 'account', 'flood');
    let refused = 0;
    let most = 0;
    for (let passed = 0; passed < TIMES.waitMs; passed += 10) {
      trial.enter('unbounded', '10.0.0.1');
      trial.serve(10, 10);
      const now = flood.filter(({ retryAfterMs }) => retryAfterMs !== null).length;
      most = Math.max(most, now - refused);
      refused = now;
    }
    expect([most <= 25, refused > 1000]).toEqual([true, true]);
  });

  it('a flood is limited to a few concurrent calls while the event loop lags, and other callers begin at once', () => {
    const trial = new Trial({ atOnce: 20, account: { atOnce: 16, perSecond: 1e6 }, waitingMax: 1000 });
    const flood = trial.many(100, 'account', 'flood');
    const isFlood = ({ id }: Made): boolean => id === 'flood';
    expect(begun(flood)).toBe(20);
    // Without competition, the flood is not limited even while the event loop lags.
    trial.nowMs += 10;
    trial.turns.advance(trial.nowMs, LATE.fromMs + 1);
    for (const call of trial.running) trial.end(call);
    expect(trial.running).toHaveLength(20);
    trial.end(trial.enter('account', 'b'));
    for (const call of trial.running) trial.end(call);
    expect(trial.running.filter(isFlood)).toHaveLength(LATE.atOnce);
    expect(begun(trial.many(3, 'account', 'c'))).toBe(3);
    trial.turns.advance(trial.nowMs, 0);
    expect(trial.running.filter(isFlood).length).toBeGreaterThanOrEqual(16);
  });

  it('slow calls give back their places, so that accounts waiting for edges delay no other account', () => {
    const trial = new Trial();
    for (const id of ['a', 'b', 'c', 'd']) trial.many(4, 'account', id);
    const other = trial.enter('account', 'other');
    expect(begun([other])).toBe(0);
    trial.pass(TIMES.slowMs);
    expect(begun([other])).toBe(1);
  });

  it('slow calls of a single caller count against it, so that it never runs more calls than there are places', () => {
    const trial = new Trial();
    const calls = trial.many(20, 'account', 'a');
    trial.pass(TIMES.slowMs + 500);
    expect(begun(calls)).toBe(OPTIONS.atOnce);
  });

  it('calls of a trusted proxy without a client address get places, but have no share or rate limit', () => {
    const trial = new Trial({ waitingMax: 1000 });
    trial.many(200, 'account', 'flood');
    const proxied = trial.many(200, 'unbounded', '10.0.0.1');
    trial.serve(1000, 10);
    expect(begun(proxied)).toBe(200);
  });

  it('when the queue is full, the longest queue loses a call at once', () => {
    const trial = new Trial();
    const flood = trial.many(36, 'network', 'flood');
    expect(trial.enter('network', 'flood').retryAfterMs).toBeGreaterThan(0);
    trial.many(4, 'network', 'b');
    expect([flood.at(-1)?.retryAfterMs !== null, trial.turns.waiting]).toEqual([true, 30]);
  });
});

/** Checks the invariants after an event. */
const check = (trial: Trial, { atOnce, account, network }: CallTurnsOptions): void => {
  const { running, waiting, turns } = trial;
  expect(turns.running).toBe(running.length);
  expect(turns.waiting).toBe(waiting.length);
  expect(turns.waiting).toBeLessThanOrEqual(OPTIONS.waitingMax);
  const shareOf = ({ kind }: Made): number => ({ account, network, unbounded: { atOnce } })[kind].atOnce;
  const isOf = (call: Made) => (each: Made) => each.kind === call.kind && each.id === call.id;
  const fast = running.filter(({ turn }) => turn.state === 'running');
  expect(fast.length).toBeLessThan(2 * atOnce);
  for (const call of waiting) {
    expect(trial.nowMs - call.enteredMs).toBeLessThan(TIMES.waitMs);
    const own = running.filter(isOf(call)).length;
    expect(own).toBeLessThanOrEqual(Math.max(atOnce, shareOf(call)));
  }
};

describe('in any order of events', () => {
  const callers = [
    ['account', 'a'],
    ['account', 'a'],
    ['account', 'b'],
    ['network', 'x'],
    ['network', 'y'],
    ['unbounded', 'p'],
  ] as const;
  const event = fc.oneof(
    { weight: 6, arbitrary: fc.record({ enter: fc.constantFrom(...callers), count: fc.integer({ min: 1, max: 8 }) }) },
    { weight: 5, arbitrary: fc.record({ end: fc.nat(40) }) },
    { weight: 2, arbitrary: fc.record({ abort: fc.nat(40) }) },
    { weight: 3, arbitrary: fc.record({ pass: fc.integer({ min: 1, max: 700 }) }) },
  );
  const noRates: CallTurnsOptions = {
    ...OPTIONS,
    account: { atOnce: 4, perSecond: 1e6 },
    network: { atOnce: 2, perSecond: 1e6 },
  };

  const play = (
    options: CallTurnsOptions,
    events: readonly (typeof event extends fc.Arbitrary<infer T> ? T : never)[],
    after: (trial: Trial) => void,
  ): Trial => {
    const trial = new Trial(options);
    for (const step of events) {
      if ('enter' in step) trial.many(step.count, step.enter[0], step.enter[1]);
      else if ('pass' in step) trial.pass(step.pass);
      else {
        const among = 'end' in step ? trial.running : trial.waiting;
        const call = among['end' in step ? step.end : step.abort];
        if (call !== undefined) trial.end(call);
      }
      check(trial, options);
      after(trial);
    }
    return trial;
  };

  const leavesNothing = (trial: Trial): void => {
    for (const call of trial.calls) trial.end(call);
    expect([trial.turns.running, trial.turns.waiting, trial.turns.callers]).toEqual([0, 0, 0]);
    // No place was leaked: new calls can still use every place.
    expect(begun(trial.many(OPTIONS.atOnce, 'account', 'late'))).toBe(OPTIONS.atOnce);
  };

  it('with rate limits, counts stay in bounds, no call waits too long, and nothing remains after all callers left', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const trial = play(OPTIONS, events, () => {});
        trial.pass(TIMES.waitMs);
        expect(trial.waiting).toHaveLength(0);
        leavesNothing(trial);
      }),
      { numRuns: 150 },
    );
  });

  it('without rate limits, free places are used, and no caller exceeds its share by a call begun while another waited', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let before: readonly Made[] = [];
        const trial = play(noRates, events, ({ running, waiting }) => {
          const fast = running.filter(({ turn }) => turn.state === 'running');
          if (waiting.length > 0) {
            // Every place is taken, unless each waiting caller already holds all places through slow calls.
            const isStuck = waiting.every(({ kind, id }) => {
              const slow = running.filter((call) => call.kind === kind && call.id === id && call.turn.state === 'slow');
              return fast.length + slow.length >= OPTIONS.atOnce;
            });
            expect(isStuck).toBe(true);
          }
          // While a caller within its share waited, no competing caller began a call beyond the competitor's share.
          const shares = { account: 4, network: 2, unbounded: 6 };
          const count = (made: Made): number =>
            running.filter((call) => call.kind === made.kind && call.id === made.id).length;
          const waitsWithin = waiting.some((call) => before.includes(call) && count(call) < shares[call.kind]);
          const fresh = running.filter((call) => before.includes(call) && !waiting.includes(call));
          if (waitsWithin) for (const call of fresh) expect(count(call)).toBeLessThanOrEqual(shares[call.kind]);
          before = waiting;
        });
        leavesNothing(trial);
      }),
      { numRuns: 150 },
    );
  });
});
