// Runs tests on Node.js 22, 24 and 26, which it takes from the npm registry. `npm test` has the oldest that we support.
// usage: npm run test:nodes -- [--node 22]... [--suite unit|database|system|data-plane]...
import { parseArgs } from 'node:util';
import { fetchNode } from './lib/fetch-package.mjs';
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';
import { SUITES, suiteSteps } from './lib/steps.mjs';

const VERSIONS = ['22', '24', '26'];

const { values } = parseArgs({
  options: { node: { type: 'string', multiple: true }, suite: { type: 'string', multiple: true } },
});
const suites = values.suite ?? ['unit', 'database', 'system'];
const unknown = suites.filter((suite) => !SUITES.includes(suite));
if (unknown.length > 0) {
  process.stderr.write(`there is no suite ${unknown.join(', ')}; there are ${SUITES.join(', ')}\n`);
  process.exit(2);
}

stopOnSignals();
const groups = [];
const majors = values.node ?? VERSIONS;
for (const major of majors) {
  const node = await fetchNode(major).catch((error) => {
    process.stdout.write(`Node.js ${major} cannot be fetched: ${error.stderr ?? error.message}\n`);
    process.stdout.write('0 passed, 1 failed\n');
    process.exit(1);
  });
  process.stdout.write(`Node.js ${major} is ${node.version}\n`);
  // What takes long, or keeps the machine busy, runs on the newest of them alone, or on the one that is asked for.
  groups.push(...suiteSteps(suites, node, major === VERSIONS.at(-1) || majors.length === 1));
}
process.exitCode = await runSteps(groups);
