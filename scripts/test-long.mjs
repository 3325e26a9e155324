// Runs the tests that take too long for `.ci/run`. A run of all steps takes hours.
// usage: npm run test:long -- [--list] [STEP|FOLDER]...
import { parseArgs } from 'node:util';
import { chooseSteps, LONG_STEPS } from './lib/long-steps.mjs';
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';
import { check } from './lib/steps.mjs';

const { values, positionals } = parseArgs({ options: { list: { type: 'boolean' } }, allowPositionals: true });
const chosen = chooseSteps(positionals);
if (chosen === null || values.list) {
  process.stdout.write(`${(chosen ?? LONG_STEPS).map(({ name }) => name).join('\n')}\n`);
  if (chosen === null) process.stderr.write(`there is no step ${positionals.join(', ')}; these are all\n`);
  process.exit(chosen === null ? 2 : 0);
}

/** Prepares a step. If a program cannot be fetched, the step fails, and the other steps run. */
async function prepare({ name, make }) {
  try {
    return await make(name);
  } catch (error) {
    const [reason] = String(error.message).split('\n');
    const text = `${name} cannot run: ${reason}\nIs the package registry reachable? Try again with: npm run test:long -- ${name}\n`;
    return check(name, undefined, ['-e', `process.stderr.write(${JSON.stringify(text)}); process.exitCode = 1`]);
  }
}

stopOnSignals();
const groups = [];
for (const step of chosen) groups.push([await prepare(step)]);
process.exitCode = await runSteps(groups);
