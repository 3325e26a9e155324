// Runs the checks: `all`, or `fast` without database and system tests.
import { endAll, runSteps } from './lib/run-steps.mjs';
import { STEPS } from './lib/steps.mjs';

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    endAll(signal);
    process.exit(1);
  });
}

const steps = STEPS[process.argv[2]];
if (steps) process.exitCode = await runSteps(steps);
else {
  process.stderr.write('usage: node scripts/run-checks.mjs all|fast\n');
  process.exitCode = 2;
}
