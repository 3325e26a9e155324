// Runs tests on Node.js 22, 24 and 26, fetched from the npm registry. `npm test` runs on the oldest supported version.
// usage: npm run test:nodes -- [--node 22]... [--suite unit|slow|database|data-plane|system|load]...
import { parseArgs } from 'node:util';
import { fetchNode } from './lib/fetch-package.mjs';
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';
import { SUITE_NAMES, suiteStep } from './lib/steps.mjs';

const { values } = parseArgs({
  options: {
    node: { type: 'string', multiple: true, default: ['22', '24', '26'] },
    suite: { type: 'string', multiple: true, default: ['unit', 'database', 'system'] },
  },
});
const unknown = values.suite.filter((suite) => !SUITE_NAMES.includes(suite));
if (unknown.length > 0) {
  process.stderr.write(`there is no suite ${unknown.join(', ')}; there are ${SUITE_NAMES.join(', ')}\n`);
  process.exit(2);
}

stopOnSignals();
const groups = [];
for (const major of values.node) {
  const node = await fetchNode(major).catch((error) => {
    process.stdout.write(`Node.js ${major} cannot be fetched: ${error.stderr ?? error.message}\n`);
    process.stdout.write('0 passed, 1 failed\n');
    process.exit(1);
  });
  process.stdout.write(`Node.js ${major} is ${node.version}\n`);
  groups.push(...values.suite.map((suite) => [suiteStep(suite, node)]));
}
process.exitCode = await runSteps(groups);
