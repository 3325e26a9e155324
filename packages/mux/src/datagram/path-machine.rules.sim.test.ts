// Two path machines at the ends of a simulated link that is cut, restored, blocked in one direction and lossy at random, with late
// timers.
import { seededRandom } from '@tunnel/testkit';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  isPathUsed,
  PATH_OFF,
  type PathEvent,
  type PathState,
  transitionPath,
  wantsUse,
} from './path-machine.rules.ts';

const DELAY_MS = 20;
const LATE_MAX_MS = 300;
const USED_LEAVES_WITHIN_MS = 5000;
const IDLE_LEAVES_WITHIN_MS = 15_000;

interface Task {
  readonly at: number;
  readonly run: () => void;
}

class Simulation {
  now = 0;
  readonly ends: readonly [End, End];
  /** Whether packets of the first and of the second end arrive. */
  passes: readonly [boolean, boolean] = [true, true];
  lossOf: () => boolean = () => false;
  lateness: () => number = () => 0;
  #tasks: Task[] = [];

  constructor() {
    this.ends = [new End(this, 0), new End(this, 1)];
  }

  later(ms: number, run: () => void): void {
    this.#tasks.push({ at: this.now + Math.max(0, ms), run });
  }

  runUntil(end: number): void {
    for (;;) {
      const next = this.#tasks.reduce<Task | null>(
        (first, task) => (first && first.at <= task.at ? first : task),
        null,
      );
      if (next === null || next.at > end) break;
      this.#tasks = this.#tasks.filter((task) => task !== next);
      this.now = next.at;
      next.run();
      for (const side of this.ends) side.check();
    }
    this.now = end;
  }

  send(from: 0 | 1, packet: 'question' | 'answer' | 'data'): void {
    if (!this.passes[from] || this.lossOf()) return;
    const to = from === 0 ? this.ends[1] : this.ends[0];
    this.later(DELAY_MS, () => to.receive(packet));
  }
}

class End {
  state: PathState = PATH_OFF;
  probes: number[] = [];
  rounds = 0;
  answeredAt = Number.NEGATIVE_INFINITY;
  /** Time of the first send without a response, or null if no response is missing. */
  unansweredUseSince: number | null = null;
  readonly #simulation: Simulation;
  readonly #side: 0 | 1;
  #timer = 0;

  constructor(simulation: Simulation, side: 0 | 1) {
    this.#simulation = simulation;
    this.#side = side;
  }

  tell(event: PathEvent): void {
    const simulation = this.#simulation;
    const before = this.state;
    const [state, effects] = transitionPath(before, event, simulation.now);
    this.state = state;
    if (state.kind === 'probing' && before.kind !== 'probing') this.rounds += 1;
    for (const effect of effects) {
      if (effect.kind === 'use') {
        // A path is used only at the moment of a response, so both directions are proven.
        expect(this.answeredAt).toBe(simulation.now);
      } else if (effect.kind === 'wake') {
        this.#timer += 1;
        const timer = this.#timer;
        const inMs = effect.at - simulation.now + simulation.lateness();
        simulation.later(inMs, () => {
          if (timer === this.#timer) this.tell({ kind: 'tick' });
        });
      } else if (effect.kind !== 'leave') {
        if (effect.kind === 'send-probe') this.probes.push(simulation.now);
        simulation.send(this.#side, 'question');
      }
    }
    if (!isPathUsed(state)) this.unansweredUseSince = null;
  }

  use(): void {
    if (!isPathUsed(this.state)) return;
    this.unansweredUseSince ??= this.#simulation.now;
    if (wantsUse(this.state)) this.tell({ kind: 'used' });
    this.#simulation.send(this.#side, 'data');
  }

  receive(packet: 'question' | 'answer' | 'data'): void {
    if (this.state.kind === 'off') return;
    if (packet === 'question') this.#simulation.send(this.#side, 'answer');
    if (packet === 'answer') {
      this.answeredAt = this.#simulation.now;
      this.unansweredUseSince = null;
    }
    this.tell({ kind: 'heard', isAnswer: packet === 'answer' });
  }

  /** Checks the invariants of an end; called after every step. */
  check(): void {
    if (!isPathUsed(this.state)) return;
    const { now } = this.#simulation;
    const unusedMs = now - this.answeredAt;
    const usedMs = this.unansweredUseSince === null ? 0 : now - Math.max(this.unansweredUseSince, this.answeredAt);
    // Returns before any call of `expect`, because this check runs a million times.
    if (unusedMs <= IDLE_LEAVES_WITHIN_MS && usedMs <= USED_LEAVES_WITHIN_MS) return;
    expect.fail(`still used ${unusedMs} ms after the last answer, ${usedMs} ms after a use without one`);
  }
}

const phase = fc.record({
  passes: fc.tuple(fc.boolean(), fc.boolean()),
  isLossy: fc.boolean(),
  durationMs: fc.nat({ max: 40_000 }),
  useEveryMs: fc.constantFrom(0, 0, 37, 900),
  user: fc.constantFrom(0, 1, 2),
  event: fc.constantFrom('none', 'none', 'addresses-0', 'addresses-1', 'started-0', 'off-on-1'),
});

it('a path is used only if proven in both directions, left soon after silence, and probed within bounds', () => {
  fc.assert(
    fc.property(fc.array(phase, { maxLength: 12, size: 'max' }), fc.integer(), (phases, seed) => {
      const chance = seededRandom(seed);
      const simulation = new Simulation();
      simulation.lateness = () => (chance() < 0.1 ? chance() * LATE_MAX_MS : 0);
      for (const end of simulation.ends) end.tell({ kind: 'started', beginAfterMs: chance() * 50 });
      let restarts = 2;
      for (const step of phases) {
        simulation.passes = step.passes;
        simulation.lossOf = () => step.isLossy && chance() < 0.02;
        restarts += 1;
        const target = simulation.ends[step.event.endsWith('1') ? 1 : 0];
        if (step.event.startsWith('addresses')) target.tell({ kind: 'addresses-changed' });
        if (step.event.startsWith('started')) target.tell({ kind: 'started', beginAfterMs: 20 });
        if (step.event.startsWith('off')) {
          target.tell({ kind: 'switched-off' });
          target.tell({ kind: 'started', beginAfterMs: 0 });
        }
        const until = simulation.now + step.durationMs;
        while (simulation.now < until) {
          const users = step.useEveryMs === 0 ? [] : simulation.ends.filter((_, side) => side !== step.user);
          for (const user of users) user.use();
          simulation.runUntil(Math.min(until, simulation.now + (step.useEveryMs || step.durationMs)));
        }
      }
      for (const { probes, rounds } of simulation.ends) {
        // A round is three attempts of 20 probes, and a restart by an event counts as another round. Probes are at least 50 ms apart.
        expect(probes.length).toBeLessThanOrEqual((rounds + restarts) * 60);
        expect(rounds).toBeLessThanOrEqual(restarts * 2 + simulation.now / 1000);
      }
    }),
    { numRuns: 60 },
  );
});

it('a recovered link is used again, whatever happened before', () => {
  fc.assert(
    fc.property(fc.array(phase, { maxLength: 6 }), fc.integer(), (phases, seed) => {
      const chance = seededRandom(seed);
      const simulation = new Simulation();
      for (const end of simulation.ends) end.tell({ kind: 'started', beginAfterMs: 0 });
      for (const { passes, durationMs } of phases) {
        simulation.passes = passes;
        simulation.runUntil(simulation.now + durationMs);
      }
      simulation.passes = [true, true];
      simulation.lossOf = () => chance() < 0.02;
      simulation.runUntil(simulation.now + 600_000 + 10_000);
      // Because of the packet loss, an end may be in doubt and pinging at this moment; the path is still used.
      for (const { state } of simulation.ends) expect(['up', 'doubtful']).toContain(state.kind);
    }),
    { numRuns: 25 },
  );
});

it('2 % loss in each direction does not end a path that is used for an hour', () => {
  const chance = seededRandom(7);
  const simulation = new Simulation();
  for (const end of simulation.ends) end.tell({ kind: 'started', beginAfterMs: 0 });
  simulation.lossOf = () => chance() < 0.02;
  while (simulation.now < 3_600_000) {
    simulation.ends[0].use();
    simulation.runUntil(simulation.now + 500);
  }
  expect(simulation.ends.map(({ rounds }) => rounds)).toEqual([1, 1]);
});
