// Runs the checks: `all`, `fast` without database and system tests, or `load`, the tests that `all` leaves out for their time.
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';
import { STEPS } from './lib/steps.mjs';

stopOnSignals();
const steps = STEPS[process.argv[2]];
if (steps) process.exitCode = await runSteps(steps);
else {
  process.stderr.write('usage: node scripts/run-checks.mjs all|fast|load\n');
  process.exitCode = 2;
}
