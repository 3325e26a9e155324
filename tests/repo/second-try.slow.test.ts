// `npm test` retries a failed test once and reports each test that needed the retry. In CI more than two such tests in a step are
// failures, besides known unsteady tests.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Ended, node, ROOT } from './checkout.fixture.ts';

// The folder is inside the checkout, so that its tests find vitest.
const CACHE = join(ROOT, '.cache');
let folder: string;
/** Output and exit code of the step: on a developer's machine, in CI, and in CI with the test listed as unsteady. */
let ended: Judged;
let inCi: Judged;
let known: Judged;

interface Judged {
  readonly code: number;
  readonly stdout: string;
}

const FILES = {
  // Without this file, vitest would use the configuration of a parent folder.
  'vitest.config.mjs': 'export default {};',
  'once.test.mjs': `
    import { describe, expect, it } from 'vitest';
    let tries = 0;
    describe('a guarantee', () => {
      it('holds at the second try', () => {
        tries += 1;
        expect(tries, 'tries').toBe(2);
      });
    });
    it('holds at once', () => {});`,
  'twice.test.mjs': `
    import { expect, it } from 'vitest';
    const tries = { one: 0, other: 0 };
    it.for(['one', 'other'])('holds at the second try of %s', (which) => {
      tries[which] += 1;
      expect(tries[which], 'tries').toBe(2);
    });`,
  'unsteady.json': '{ "once.test.mjs > a guarantee > holds at the second try": "a clock of whole seconds" }',
  'always.test.mjs': `
    import { expect, it } from 'vitest';
    it('never holds', () => expect(1).toBe(2));`,
};

beforeAll(async () => {
  mkdirSync(CACHE, { recursive: true });
  folder = mkdtempSync(join(CACHE, 'second-try-'));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  const { stdout, stderr } = await runTests();
  const parts = stdout.split(/^exit code (\d)\n/m);
  const judged = [0, 2, 4].map((at) => ({ stdout: parts[at] ?? '', code: Number(parts[at + 1] ?? -1) }));
  [ended, inCi, known] = judged as [Judged, Judged, Judged];
  expect(parts, stderr).toHaveLength(7);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the tests once and evaluates the reports three times, because three runs of vitest would be the same. */
const runTests = (): Promise<Ended> => {
  const program = `
    import { runSteps } from '${ROOT}/scripts/lib/run-steps.mjs';
    import { testStep } from '${ROOT}/scripts/lib/test-step.mjs';
    const step = (list) => {
      const more = { unsteadyList: '${folder}/' + list };
      return testStep('files', '${folder.split('/').at(-1)}/reports', ['--root', '${folder}', '--maxWorkers=1'], more);
    };
    const judge = async (step, required) => {
      process.env.TUNNEL_STEADY_REQUIRED = required;
      process.stdout.write(\`exit code \${await runSteps([[step]])}\\n\`);
    };
    const judgeAgain = (list) => judge({ ...step(list), before: undefined, args: ['-e', 'process.exit(1)'] }, '1');
    await judge(step('no-list.json'), '0');
    await judgeAgain('no-list.json');
    await judgeAgain('unsteady.json');`;
  return node(['--input-type=module', '-e', program]);
};

it('tests that pass at the second try are listed with their first error', () => {
  expect(ended.stdout).toContain(
    '\n    unsteady: once.test.mjs > a guarantee > holds at the second try: tries: expected 1 to be 2',
  );
  expect(ended.stdout.match(/unsteady:/g)).toHaveLength(3);
});

it('in CI more than two unsteady tests count as failures', () => {
  expect(inCi).toMatchObject({ code: 1, stdout: expect.stringMatching(/\n1 passed, 4 failed\n$/) });
  expect(inCi.stdout).toContain(
    '\n    unsteady, FAILED: once.test.mjs > a guarantee > holds at the second try: tries:',
  );
});

it('in CI two unsteady tests are tolerated, besides tests listed with a reason in tests/unsteady.json', () => {
  expect(known).toMatchObject({ code: 1, stdout: expect.stringMatching(/\n4 passed, 1 failed\n$/) });
  expect(known.stdout).toContain('\n    unsteady, known (a clock of whole seconds): once.test.mjs > a guarantee >');
  expect(known.stdout.match(/unsteady:/g)).toHaveLength(2);
  expect(known.stdout).not.toContain('unsteady, FAILED:');
});

it('a test that fails at both tries counts as failed', () => {
  expect(ended).toMatchObject({ code: 1, stdout: expect.stringMatching(/\n4 passed, 1 failed\n$/) });
  expect(ended.stdout).toMatch(/ {4}FAILED: 4 passed, 1 FAILED in [\d.]+ s\n/);
});
