// Kills the platform repeatedly at random points while it reports usage to the payment simulator. At the end the simulator must have
// received every byte in the tables exactly once.

import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';

const USAGE = `usage: node tests/tools/billing/metering-kill.mjs [--kills N] [--accounts N]
50 kills, 20 accounts with something to report in each run: about 5 minutes.`;

await runScript(
  {
    name: 'metering, killed',
    usage: USAGE,
    options: { kills: 50, accounts: 20 },
    limitSecs: ({ kills, accounts }) => 300 + kills * 30 + accounts * 10,
  },
  async ({ values: { kills, accounts }, say, check }) => {
    const { MeteringTrial } = await loadBundled(
      new URL('../../system/metering-trial.fixture.ts', import.meta.url),
      'metering-trial',
    );
    const trial = await MeteringTrial.open({ accounts, random: Math.random });
    try {
      let cut = 0;
      for (let kill = 1; kill <= kills; kill += 1) {
        const left = await trial.killOnce();
        if (left > 0) cut += 1;
        if (kill % 10 === 0) say(`${kill} kills, ${cut} of them with events under way`);
      }
      const { used, reported } = await trial.totals();
      const total = (all) => all.reduce((sum, bytes) => sum + bytes, 0);
      const wrong = used.filter((bytes, at) => bytes !== reported[at]).length;
      check(
        wrong === 0,
        `the simulator has ${total(reported)} of ${total(used)} bytes; ${wrong} of ${used.length} accounts differ`,
      );
      check(cut > 0, `${cut} of ${kills} kills came while events were under way`);
      return `${kills} kills, ${await trial.sentAgain()} events sent again, ${total(used)} bytes of ${used.length} accounts, each once`;
    } finally {
      await trial.close();
    }
  },
);
