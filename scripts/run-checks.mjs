// Runs the checks: `all`, `fast` without database and system tests, or those that `all` leaves out for their time: `browser` and `load`.
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';
import { RUNS } from './lib/steps.mjs';

// A third of the cases of random tests, by another seed each time; `.ci/run` asks for all of them.
process.env.TUNNEL_RANDOM_TIMES ??= String(1 / 3);
stopOnSignals();
const run = RUNS[process.argv[2]];
if (run) process.exitCode = await runSteps(run.groups, run.budgetSeconds);
else {
  process.stderr.write(`usage: node scripts/run-checks.mjs ${Object.keys(RUNS).join('|')}\n`);
  process.exitCode = 2;
}
