// An account with 1,500 connections and anonymous visitors with 1,000 flood the API of a stack. Measures the duration of a different
// tenant's calls, registrations and first authentications, with and without the flood.
import { availableParallelism, loadavg } from 'node:os';
import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';

const USAGE = `usage: node tests/tools/platform/api-flood.mjs [--account N] [--strangers N] [--rounds N]
1,500 and 1,000 connections, 150 rounds with and without them: about 2 minutes.`;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

await runScript(
  {
    name: 'API, flooded',
    usage: USAGE,
    options: { account: 1500, strangers: 1000, rounds: 150 },
    limitSecs: ({ rounds }) => 300 + rounds * 10,
  },
  async ({ values: { account, strangers, rounds }, say, check }) => {
    const { ApiFlood, MEASURED, percentile } = await loadBundled(
      new URL('../../system/api-flood.fixture.ts', import.meta.url),
      'api-flood',
    );
    // The machine counts as busy before the start, because both floods and the server already need more than a process per core.
    const isBusy = loadavg()[0] > availableParallelism();
    const trial = await ApiFlood.open();
    try {
      const measure = async () => {
        const samples = [];
        for (let round = 0; round < rounds; round += 1) {
          samples.push(...(await trial.round()));
          await pause(50);
        }
        return samples;
      };
      await trial.round();
      const quiet = await measure();
      await trial.flood({ account, strangers });
      say(`${account} connections of an account and ${strangers} of strangers`);
      const loud = await measure();
      say(
        (await trial.metrics())
          .split('\n')
          .filter((line) => line.startsWith('tunnel_api'))
          .join('  '),
      );
      for (const [index, answers] of (await trial.calm()).entries()) {
        say(`${index === 0 ? 'account' : 'strangers'}: ${JSON.stringify(answers)}`);
      }
      for (const what of MEASURED) {
        const before = percentile(quiet, what, 0.99);
        const p50 = percentile(loud, what, 0.5);
        const p99 = percentile(loud, what, 0.99);
        const bound = Math.max(3 * before, 100);
        const refused = loud.filter((sample) => sample.what === what && !sample.isServed).length;
        const shown = [percentile(quiet, what, 0.5), before, p50, p99].map((ms) => Math.round(ms)).join(', ');
        const told = `${what}: p50, p99 quiet and loud ${shown} ms; ${refused} refused`;
        check(
          refused === 0 && (isBusy || p99 <= bound),
          isBusy ? `${told}; times not judged, for others use the machine` : told,
        );
      }
      return `${rounds} rounds`;
    } finally {
      await trial.close();
    }
  },
);
