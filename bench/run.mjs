// npm run bench: measures the data plane against direct connections and nginx in a single run on this machine.
import { existsSync } from 'node:fs';
import { leaveNothingBehind } from './lib/children.mjs';
import { describeMachine, describeVersions } from './lib/machine.mjs';
import { renderComparison, renderMarkdown } from './lib/markdown.mjs';
import { readBenchOptions, UsageError } from './lib/options.mjs';
import { Progress } from './lib/progress.mjs';
import { pathsOf, runRounds } from './lib/run-rounds.mjs';
import { summarize } from './lib/summary.mjs';
import { writeResults } from './lib/write-results.mjs';
import { findWrk } from './lib/wrk.mjs';
import { choosePaths, PATH_NAMES } from './paths/index.mjs';
import { chooseScenarios, SCENARIOS } from './scenarios/index.mjs';

const USAGE = `usage: npm run bench [-- OPTIONS]
  --scenario A,B   only these; the beginning of a name means all that begin so
  --path A,B       only these of ${PATH_NAMES.join(', ')}
  --rounds N       how often each path is measured (3)
  --quick          one round of short measurements: rough figures in about a minute
  --node PATH      the Node.js that runs edge and client
  --baseline DIR   another checkout, built: its edge, client and platform are measured beside ours in the same rounds (before, before-tls, before-platform)
  --json FILE      the figures as JSON, besides the usual place
  --list           the names of the scenarios
The results are written to .cache/bench.`;

async function bench(options) {
  const chosen = chooseScenarios(options.scenarios);
  const { paths, nginx } = choosePaths(options.paths, options.baseline);
  const tools = { wrk: findWrk() };
  const machine = describeMachine();
  const versions = describeVersions({ node: options.node, nginx, wrk: tools.wrk });
  const scenarios = chosen.filter(({ needs = [] }) => needs.every((name) => !tools[name].missing));
  const total = options.rounds * scenarios.reduce((sum, scenario) => sum + pathsOf(scenario, paths).length, 0);
  const progress = new Progress(total);
  if (scenarios.length < chosen.length) progress.say(tools.wrk.missing);
  if (nginx.missing) progress.say(`${nginx.missing}: there will be no ratios`);
  const results = await runRounds({ ...options, scenarios, paths, tools, progress });
  progress.finish();
  const summary = summarize({ results, machine, versions, options, date: new Date() });
  process.stdout.write(`${renderMarkdown(summary)}\n`);
  if (options.baseline) {
    process.stdout.write(`${renderComparison(summary)}\n`);
    return;
  }
  process.stderr.write(`written: ${writeResults(summary, options.json).join(', ')}\n`);
}

async function main(args) {
  try {
    const options = readBenchOptions(args);
    if (options.help) process.stdout.write(`${USAGE}\n`);
    else if (options.list) {
      for (const { name, title } of SCENARIOS) process.stdout.write(`${name.padEnd(20)} ${title}\n`);
    } else if (!existsSync('/proc/self/stat'))
      throw new Error('the bench reads CPU and memory from /proc: it needs Linux');
    else await bench(options);
    return 0;
  } catch (error) {
    process.stderr.write(`\nbench failed: ${error.message}\n`);
    if (error instanceof UsageError) process.stderr.write(`${USAGE}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

leaveNothingBehind();
process.exit(await main(process.argv.slice(2)));
