// Runs the checks: `all`, or `fast` without database and system tests.
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';
import { STEPS } from './lib/steps.mjs';

stopOnSignals();
const steps = STEPS[process.argv[2]];
if (steps) process.exitCode = await runSteps(steps);
else {
  process.stderr.write('usage: node scripts/run-checks.mjs all|fast\n');
  process.exitCode = 2;
}
