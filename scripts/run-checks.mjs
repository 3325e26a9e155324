// Runs the checks: `all`, `fast` without database and system tests, or `load`, the tests that `all` leaves out for their time.
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';
import { STEPS } from './lib/steps.mjs';

// A third of the cases of random tests, by another seed each time; `.ci/run` asks for all of them.
process.env.TUNNEL_RANDOM_TIMES ??= String(1 / 3);
stopOnSignals();
const steps = STEPS[process.argv[2]];
if (steps) process.exitCode = await runSteps(steps);
else {
  process.stderr.write('usage: node scripts/run-checks.mjs all|fast|load\n');
  process.exitCode = 2;
}
