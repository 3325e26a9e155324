// Runs the checks: `all`; `fast`, without database and system tests, and of lint and unit tests only those that the change concerns (`--all`: all of them); or those that
// `all` leaves out for their time: `slow`, `browser` and `load`.
import { changedFiles } from './lib/changed-files.mjs';
import { chooseChecks } from './lib/choose-checks.mjs';
import { ImportGraph, packageEntries, readSources } from './lib/import-graph.mjs';
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';
import { fastRun, RUNS } from './lib/steps.mjs';

/** Says what it has chosen. */
function chooseFast(flag) {
  const changed = flag === '--all' ? undefined : changedFiles();
  const { lines, ...chosen } = chooseChecks(new ImportGraph(readSources(), packageEntries()), changed);
  for (const line of lines) process.stdout.write(`${line}\n`);
  return fastRun(chosen);
}

// A third of the cases of random tests, by another seed each time; `.ci/run` asks for all of them.
process.env.TUNNEL_RANDOM_TIMES ??= String(1 / 3);
stopOnSignals();
const [name, flag] = process.argv.slice(2);
const run = name === 'fast' ? chooseFast(flag) : RUNS[name];
if (run) process.exitCode = await runSteps(run.groups, run.budgetSeconds);
else {
  process.stderr.write(`usage: node scripts/run-checks.mjs ${Object.keys(RUNS).join('|')}|fast [--all]\n`);
  process.exitCode = 2;
}
