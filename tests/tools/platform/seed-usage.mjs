// Fills a database with the tunnels of a busy account and of many others, then queries usage like the API and prints how PostgreSQL
// answers. Checks that PostgreSQL never reads a large table completely, and that rows of other accounts add no cost.

import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';

const USAGE = `usage: node tests/tools/platform/seed-usage.mjs [--rows N] [--all N] [--accounts N]
1000000 rows of one account among 10000000 of 10000 accounts: about ten minutes and 6 GB below the folder for temporary files.
TEST_DATABASE_URL names a server to use instead of the embedded one.`;

/** Loads the trial as a bundle, because the measured services are TypeScript. */
const loadTrial = () => loadBundled(new URL('lib/usage-trial.mjs', import.meta.url), 'usage-trial');

await runScript(
  {
    name: 'usage at its size',
    usage: USAGE,
    needsBuild: false,
    options: { rows: 1_000_000, all: 10_000_000, accounts: 10_000 },
    limitSecs: ({ all }) => 300 + all / 5000,
  },
  async (tools) => (await loadTrial()).tryUsage(tools),
);
