// kill -9 of each part of a stack in turn, and of all of it, while visitors use the tunnels of a paying account: every part comes back in
// its time, clients by themselves, nothing is charged twice, and what an edge had not written down is at most what 100 ms carry.
import { availableParallelism, loadavg } from 'node:os';
import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';

const USAGE = `usage: node tests/tools/platform/part-kill.mjs [--kills N] [--unbilled-ms N]
20 kills of edge, platform, database and parent each: about 6 minutes.
--unbilled-ms: what a killed edge may not have written down yet; more than the promised 100 on a busy machine.`;

/** The promise, for half of the kills: a machine that does something else is late now and then. */
const BACK_MS = { edge: 1500, platform: 2000, database: 10_000, parent: 10_000 };

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

await runScript(
  {
    name: 'parts, killed',
    usage: USAGE,
    options: { kills: 20, 'unbilled-ms': 100 },
    limitSecs: ({ kills }) => 600 + kills * 120,
  },
  async ({ values: { kills, 'unbilled-ms': unbilledMs }, say, check }) => {
    const { KillTrial, PARTS } = await loadBundled(
      new URL('../../system/kill-trial.fixture.ts', import.meta.url),
      'kill-trial',
    );
    const trial = await KillTrial.open();
    try {
      // Starting a program takes as long as the machine makes it take: our own load is about one process a core.
      const isBusy = loadavg()[0] > 2 * availableParallelism();
      const times = new Map(PARTS.map((part) => [part, []]));
      // In turn, the parent last: with a new one no part has a past that it would be started later for.
      for (let round = 1; round <= kills; round += 1) {
        for (const part of PARTS) times.get(part).push(await trial.kill(part));
        if (round % 5 === 0) say(`${round} kills of each`);
      }
      for (const [part, all] of times) {
        const half = Math.round(median(all));
        const longest = Math.round(Math.max(...all));
        const what = `${part}: back after ${half} ms in half of ${kills} kills, ${longest} ms at most`;
        if (isBusy) say(`${what}; not judged, for others use the machine`);
        else check(half <= BACK_MS[part], what);
      }
      // A killed parent takes the edge with it.
      const { charged, least, most, carried } = await trial.totals(2 * kills, unbilledMs);
      check(charged <= most, `nothing is charged twice: ${charged} of at most ${most} bytes`);
      check(
        charged >= least,
        `${carried - charged} of ${carried} bytes are not charged, at most ${carried - least} may be`,
      );
      const billed = await trial.billed();
      check(billed.charged === billed.reported, `billed are ${billed.reported} of ${billed.charged} bytes`);
      const goneMs = Math.round(await trial.killForGood());
      check(goneMs <= 3000, `a killed parent leaves no process after ${goneMs} ms`);
      await trial.stack.start();
      const left = await trial.stop();
      check(left.processes.length === 0, `processes left: ${left.processes.length}`);
      check(left.ports.length === 0, `ports left: ${left.ports.length}`);
      say('stopped in order');
      return `${kills} kills of each, ${charged} bytes charged of ${carried} carried`;
    } finally {
      await trial.close();
    }
  },
);
