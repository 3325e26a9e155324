// The verdicts on the duration of checks: by their budgets, and by the load of other programs on the processor.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

interface Time {
  readonly name: string;
  readonly seconds: number;
  readonly budgetSeconds?: number;
  readonly isSum?: boolean;
  readonly othersShare: number | null;
}

interface Run {
  readonly times: readonly Time[];
  readonly passed: number;
  readonly failed: number;
}

interface Reading {
  readonly atMs: number;
  readonly usedTicks: number;
  readonly stolenTicks: number;
  readonly ownTicks: number;
}

const { judgeTime, endOfRun } = (await import(join(ROOT, 'scripts/lib/budgets.mjs'))) as {
  judgeTime: (time: Omit<Time, 'name'>) => string;
  endOfRun: (run: Run) => { readonly text: string; readonly code: number };
};
const { lostSpeed, readProcessorUse, takenByOthers } = (await import(join(ROOT, 'scripts/lib/processor-use.mjs'))) as {
  lostSpeed: (usualMs?: number, now?: () => number, work?: () => unknown) => number;
  readProcessorUse: () => Reading | null;
  takenByOthers: (before: Reading | null, after: Reading | null, cores?: number) => number | null;
};

it.each([
  ['ok', { seconds: 60, budgetSeconds: 60, othersShare: 0 }],
  ['ok', { seconds: 600, othersShare: 0 }],
  ['over', { seconds: 61, budgetSeconds: 60, othersShare: 0 }],
  ['over', { seconds: 80, budgetSeconds: 60, othersShare: 0 }],
  ['failed', { seconds: 81, budgetSeconds: 60, othersShare: 0 }],
  ['failed', { seconds: 81, budgetSeconds: 60, othersShare: 0.1 }],
  ['over', { seconds: 81, budgetSeconds: 60, othersShare: 0, isSum: true }],
  ['busy', { seconds: 81, budgetSeconds: 60, othersShare: 0.11 }],
  ['busy', { seconds: 81, budgetSeconds: 60, othersShare: null }],
])('the verdict on a step time is %s for %o', (verdict, time) => {
  expect(judgeTime(time)).toBe(verdict);
});

it('a run of checks ends with a table of step times and a count; a step far over its budget counts as a failure', () => {
  const times = [
    { name: 'types', seconds: 9.6, budgetSeconds: 45, othersShare: 0 },
    { name: 'unit tests', seconds: 130, budgetSeconds: 110, othersShare: 0 },
    { name: 'system tests', seconds: 300, budgetSeconds: 110, othersShare: 0.42 },
    { name: 'browser', seconds: 300, budgetSeconds: 45, othersShare: null },
    { name: 'soak', seconds: 600, othersShare: 0 },
    { name: 'all', seconds: 900, budgetSeconds: 300, othersShare: 0.02 },
  ];
  const { text, code } = endOfRun({ times, passed: 7, failed: 0 });
  expect(text.split('\n')).toEqual([
    '',
    'step           time  budget',
    'types          10 s    45 s',
    'unit tests    130 s   110 s  over its budget',
    'system tests  300 s   110 s  too slow, but 42 % of the processor was busy elsewhere',
    'browser       300 s    45 s  too slow, if the machine was not busy',
    'soak          600 s',
    'all           900 s   300 s  FAILED: over its budget by more than a third',
    '',
    '7 passed, 1 failed',
    '',
  ]);
  expect(code).toBe(1);
  expect(endOfRun({ times: times.slice(0, 5), passed: 7, failed: 0 }).code).toBe(0);
});

it("the share taken by other programs excludes the checks' own processor time and includes time stolen by the host", () => {
  const before = { atMs: 1000, usedTicks: 5000, stolenTicks: 10, ownTicks: 100 };
  const after = { atMs: 11_000, usedTicks: 6500, stolenTicks: 110, ownTicks: 1300 };
  // Of 20 processor seconds on two cores, other programs took 3 and the host took 1.
  expect(takenByOthers(before, after, 2)).toBeCloseTo(0.2);
  expect(takenByOthers(before, { ...after, ownTicks: 1600, stolenTicks: 10 }, 2)).toBe(0);
  expect([takenByOthers(null, after, 2), takenByOthers(before, null, 2)]).toEqual([null, null]);
});

it.each([
  [50, 0.2],
  [40, 0],
  [30, 0],
])('a processor that takes %d ms for work of 40 ms has lost %f of its speed', (tookMs, lost) => {
  let nowMs = 0;
  // Every reading of the clock advances it by the time of a measurement.
  const now = (): number => (nowMs += tookMs);
  expect(lostSpeed(40, now, () => {})).toBeCloseTo(lost);
});

it.runIf(process.platform === 'linux')(
  'the processor time of the checks includes child processes that have ended',
  () => {
    const before = readProcessorUse();
    spawnSync(process.execPath, ['-e', 'while (process.cpuUsage().user < 300_000);']);
    const after = readProcessorUse();
    expect((after?.ownTicks ?? 0) - (before?.ownTicks ?? 0)).toBeGreaterThanOrEqual(30);
  },
);

it('CONTRIBUTING.md lists the steps of npm run test:long', async () => {
  const { LONG_STEPS } = (await import(join(ROOT, 'scripts/lib/long-steps.mjs'))) as {
    LONG_STEPS: readonly { readonly name: string }[];
  };
  const page = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  const [, table = ''] = /\n\| Step \|[^\n]*\n\|[-|]+\n((?:\|.*\n)+)/.exec(page) ?? [];
  expect([...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name)).toEqual(LONG_STEPS.map(({ name }) => name));
});
