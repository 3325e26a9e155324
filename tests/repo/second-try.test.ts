// `npm test` tries a failed test once more, and tells of each that needed it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Ended, node, ROOT } from './checkout.fixture.ts';

// In the checkout, where its tests find vitest.
const CACHE = join(ROOT, '.cache');
let folder: string;
let ended: Ended;

const FILES = {
  // Else those of a folder above would be found.
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
  'always.test.mjs': `
    import { expect, it } from 'vitest';
    it('never holds', () => expect(1).toBe(2));`,
};

beforeAll(async () => {
  mkdirSync(CACHE, { recursive: true });
  folder = mkdtempSync(join(CACHE, 'second-try-'));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  const program = `
    import { runSteps } from '${ROOT}/scripts/lib/run-steps.mjs';
    import { testStep } from '${ROOT}/scripts/lib/test-step.mjs';
    const args = ['--root', '${folder}'];
    process.exitCode = await runSteps([[testStep('two files', '${folder.split('/').at(-1)}/its', args)]]);`;
  ended = await node(['--input-type=module', '-e', program]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('a test that passed at its second try counts as passed, and is named with what it first said', () => {
  expect(ended.stdout).toContain(
    '\n    unsteady: once.test.mjs > a guarantee > holds at the second try: tries: expected 1 to be 2',
  );
  expect(ended.stdout.match(/unsteady:/g)).toHaveLength(1);
});

it('a test that failed at both of them is failed', () => {
  expect(ended).toMatchObject({ code: 1, stdout: expect.stringMatching(/\n2 passed, 1 failed\n$/) });
  expect(ended.stdout).toMatch(/ {4}FAILED: 2 passed, 1 FAILED in [\d.]+ s\n/);
});
