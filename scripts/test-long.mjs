// Runs the tests that do not fit into `.ci/run`: all of them takes hours.
// usage: npm run test:long -- [--list] [STEP|FOLDER]...
import { parseArgs } from 'node:util';
import { chooseSteps, LONG_STEPS } from './lib/long-steps.mjs';
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';

const { values, positionals } = parseArgs({ options: { list: { type: 'boolean' } }, allowPositionals: true });
const chosen = chooseSteps(positionals);
if (chosen === null || values.list) {
  process.stdout.write(`${(chosen ?? LONG_STEPS).map(({ name }) => name).join('\n')}\n`);
  if (chosen === null) process.stderr.write(`there is no step ${positionals.join(', ')}; these are all\n`);
  process.exit(chosen === null ? 2 : 0);
}

stopOnSignals();
const groups = [];
for (const { name, make } of chosen) groups.push([await make(name)]);
process.exitCode = await runSteps(groups);
