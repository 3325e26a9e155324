// Runs the checks. `all` runs the default checks. `fast` runs no database and system tests, and lints and unit-tests only files affected
// by the change (`--all`: all files). `slow`, `browser` and `load` run tests that `all` omits because they take long.
import { changedFiles } from './lib/changed-files.mjs';
import { chooseChecks } from './lib/choose-checks.mjs';
import { ImportGraph, packageEntries, readSources } from './lib/import-graph.mjs';
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';
import { fastRun, RUNS } from './lib/steps.mjs';

/** Chooses the checks of `fast`, and prints the choice. */
function chooseFast(flag) {
  const changed = flag === '--all' ? undefined : changedFiles();
  const { lines, ...chosen } = chooseChecks(new ImportGraph(readSources(), packageEntries()), changed);
  for (const line of lines) process.stdout.write(`${line}\n`);
  return fastRun(chosen);
}

// Runs a third of the cases of randomized tests, with a different seed each time. `.ci/run` sets the variable to run all cases.
process.env.TUNNEL_RANDOM_TIMES ??= String(1 / 3);
stopOnSignals();
const [name, flag] = process.argv.slice(2);
const run = name === 'fast' ? chooseFast(flag) : RUNS[name];
if (run) process.exitCode = await runSteps(run.groups, run.budgetSeconds);
else {
  process.stderr.write(`usage: node scripts/run-checks.mjs ${Object.keys(RUNS).join('|')}|fast [--all]\n`);
  process.exitCode = 2;
}
