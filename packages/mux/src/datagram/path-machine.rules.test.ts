import { describe, expect, it } from 'vitest';
import { MUX_LIMITS } from '../limits.ts';
import {
  isPathUsed,
  PATH_OFF,
  type PathEffect,
  type PathEvent,
  type PathState,
  pathReasonOf,
  transitionPath,
  wantsUse,
} from './path-machine.rules.ts';

/** A path machine with its timer. Effects are recorded with their time. */
class Driven {
  state: PathState = PATH_OFF;
  now = 1000;
  readonly done: string[] = [];
  #wakeAt = Number.POSITIVE_INFINITY;

  tell(event: PathEvent): void {
    const [state, effects] = transitionPath(this.state, event, this.now);
    this.state = state;
    for (const effect of effects) this.#perform(effect);
  }

  /** Runs the machine until `end`, with every timer on time. */
  runUntil(end: number): void {
    while (this.#wakeAt <= end) {
      this.now = this.#wakeAt;
      this.#wakeAt = Number.POSITIVE_INFINITY;
      this.tell({ kind: 'tick' });
    }
    this.now = end;
  }

  of(kind: string): number[] {
    return this.done.filter((line) => line.endsWith(` ${kind}`)).map((line) => Number(line.split(' ')[0]));
  }

  #perform(effect: PathEffect): void {
    if (effect.kind === 'wake') this.#wakeAt = effect.at;
    else this.done.push(`${this.now} ${effect.kind}${effect.kind === 'leave' ? `:${effect.reason}` : ''}`);
  }
}

const START: PathEvent = { kind: 'started', beginAfterMs: 0 };
const ANSWER: PathEvent = { kind: 'heard', isAnswer: true };
const ARRIVAL: PathEvent = { kind: 'heard', isAnswer: false };

const up = (): Driven => {
  const path = new Driven();
  path.tell(START);
  path.tell(ANSWER);
  path.done.length = 0;
  return path;
};

describe('probing a path', () => {
  it('sends probes every 50 ms for half a second, then every 250 ms, in three attempts of 3 s', () => {
    const path = new Driven();
    path.tell(START);
    path.runUntil(1000 + 9000);
    const dense = Array.from({ length: 11 }, (_, n) => n * 50);
    const thin = Array.from({ length: 9 }, (_, n) => 750 + n * 250);
    const oneTry = [...dense, ...thin];
    const all = [0, 3000, 6000].flatMap((begin) => oneTry.map((offset) => 1000 + begin + offset));
    expect(path.of('send-probe')).toEqual(all);
    expect([path.state.kind, pathReasonOf(path.state)]).toEqual(['down', 'no-answer']);
  });

  it('starts after the delay that lets both sides start together', () => {
    const path = new Driven();
    path.tell({ kind: 'started', beginAfterMs: 40 });
    path.runUntil(1060);
    expect(path.of('send-probe')).toEqual([1040]);
  });

  it('succeeds only with a response to a probe', () => {
    const path = new Driven();
    path.tell(START);
    path.runUntil(1200);
    path.tell(ARRIVAL);
    expect([path.state.kind, pathReasonOf(path.state)]).toEqual(['probing', 'probing']);
    path.tell(ANSWER);
    expect([path.state.kind, pathReasonOf(path.state)]).toEqual(['up', '']);
    expect(path.of('use')).toEqual([1200]);
  });

  it('does not make up for probes that a late timer missed', () => {
    const path = new Driven();
    path.tell(START);
    path.now = 1420;
    path.tell({ kind: 'tick' });
    path.runUntil(1500);
    expect(path.of('send-probe')).toEqual([1000, 1420, 1450, 1500]);
  });

  it('is repeated after pauses of 5 s, 30 s, 2 min, and then 10 min', () => {
    const path = new Driven();
    path.tell(START);
    path.runUntil(4_000_000);
    const rounds = path.of('send-probe').filter((at, index, all) => index === 0 || at - (all[index - 1] ?? 0) > 1000);
    const pauses = rounds.slice(1).map((at, index) => at - (rounds[index] ?? 0) - 9000);
    expect(pauses.slice(0, 5)).toEqual([5000, 30_000, 120_000, 600_000, 600_000]);
  });

  it('restarts at once when an address changes or a packet arrives', () => {
    for (const event of [{ kind: 'addresses-changed' }, ARRIVAL, ANSWER, START] as const) {
      const path = new Driven();
      path.tell(START);
      path.runUntil(11_000);
      path.done.length = 0;
      path.tell(event);
      expect(path.done).toEqual(['11000 send-probe']);
    }
  });
});

describe('a path that is up', () => {
  it('is pinged every 10 s while idle', () => {
    const path = up();
    path.runUntil(11_000);
    expect(path.of('send-ping')).toEqual([11_000]);
    path.tell(ANSWER);
    path.runUntil(20_000);
    expect(path.of('send-ping')).toEqual([11_000]);
  });

  it('is pinged 2 s after the last response while in use, or at once if that was longer ago', () => {
    const path = up();
    expect(wantsUse(path.state)).toBe(true);
    path.tell({ kind: 'used' });
    expect(wantsUse(path.state)).toBe(false);
    path.runUntil(3000);
    expect(path.of('send-ping')).toEqual([3000]);
    path.tell(ANSWER);
    path.now = 9000;
    path.tell({ kind: 'used' });
    expect(path.of('send-ping')).toEqual([3000, 9000]);
  });

  it.each([
    ['in use', 3000, 5000],
    ['idle', 11_000, 13_000],
  ])('%s is left after 2 s of unanswered pings', (use, asked, left) => {
    const path = up();
    if (use === 'in use') path.tell({ kind: 'used' });
    path.runUntil(left - 1);
    expect([path.state.kind, path.of('send-ping')[0], path.of('send-ping').length]).toEqual(['doubtful', asked, 20]);
    expect(isPathUsed(path.state)).toBe(true);
    path.runUntil(left);
    expect(path.done.at(-1)).toBe(`${left} leave:went-silent`);
    expect([path.state.kind, pathReasonOf(path.state)]).toEqual(['down', 'went-silent']);
  });

  it('is left even if packets arrive while pings get no response', () => {
    const path = up();
    path.tell({ kind: 'used' });
    for (let at = 1100; at <= 5000; at += 100) {
      path.runUntil(at);
      if (path.state.kind !== 'down') path.tell(ARRIVAL);
    }
    expect(path.of('leave:went-silent')).toEqual([5000]);
  });

  it('is not pinged earlier because a timer fires early', () => {
    const path = up();
    path.tell({ kind: 'used' });
    for (let at = 1010; at < 5000; at += 10) {
      path.runUntil(at);
      if (path.state.kind === 'doubtful') path.tell({ kind: 'tick' });
    }
    const asked = path.of('send-ping').filter((at) => at > 4000);
    const gaps = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
    expect(gaps.length).toBeGreaterThan(1);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(MUX_LIMITS.PATH_DOUBT_PING_EVERY_MS);
  });

  it('is trusted again after one response', () => {
    const path = up();
    path.tell({ kind: 'used' });
    path.runUntil(4900);
    path.tell(ANSWER);
    path.runUntil(14_000);
    expect(path.of('leave:went-silent')).toEqual([]);
    expect(path.state.kind).toBe('up');
  });

  it('is pinged at once when an address of the computer changes', () => {
    const path = up();
    path.tell({ kind: 'addresses-changed' });
    expect(path.done).toEqual(['1000 send-ping']);
  });

  it('is pinged once more before it is left when the process was suspended', () => {
    const path = up();
    path.now = 3_600_000;
    path.tell({ kind: 'tick' });
    path.now += 60_000;
    path.tell({ kind: 'tick' });
    expect(path.state.kind).toBe('doubtful');
    path.tell(ANSWER);
    expect(path.state.kind).toBe('up');
  });

  it('is left at once when switched off, and stays off', () => {
    const path = up();
    path.tell({ kind: 'switched-off' });
    path.tell(ANSWER);
    path.runUntil(100_000);
    expect(path.done).toEqual(['1000 leave:off']);
    expect(pathReasonOf(path.state)).toBe('off');
  });
});

describe('a path after silence', () => {
  const cutAfter = (heldMs: number): Driven => {
    const path = up();
    for (let at = path.now; at < 1000 + heldMs; at += 1000) {
      path.runUntil(at);
      path.tell(ANSWER);
    }
    path.tell({ kind: 'used' });
    while (path.state.kind !== 'down') path.runUntil(path.now + 100);
    return path;
  };

  it('is probed again after 5 s, and reports went-silent until that probing fails', () => {
    const path = cutAfter(20_000);
    const left = path.now;
    path.done.length = 0;
    path.runUntil(left + 5000);
    expect([path.of('send-probe'), path.state.kind, pathReasonOf(path.state)]).toEqual([
      [left + 5000],
      'probing',
      'went-silent',
    ]);
    path.runUntil(left + 14_000);
    expect(pathReasonOf(path.state)).toBe('no-answer');
  });

  it('is probed less and less often if it never holds, and from the first pause if it did', () => {
    const path = cutAfter(1000);
    const pauses: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      pauses.push(path.state.kind === 'down' ? path.state.retryAt - path.now : 0);
      path.runUntil(path.now + (pauses.at(-1) ?? 0));
      path.tell(ANSWER);
      path.tell({ kind: 'used' });
      while (path.state.kind !== 'down') path.runUntil(path.now + 100);
    }
    expect(pauses).toEqual([5000, 30_000, 120_000]);
    expect(cutAfter(30_000).state).toMatchObject({ kind: 'down', history: { failures: 1 } });
  });
});
