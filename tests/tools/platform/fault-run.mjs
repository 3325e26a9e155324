// Kills edge, platform, database and clients with SIGKILL at random, while visitors of two tenants each send 40 requests per second: no
// tenant is without responses for long, nothing is billed twice, and at most the last 100 ms before an edge kill are not billed. Before
// that, the edge is killed alone to measure how long its ports are closed.
import { loadavg } from 'node:os';
import { readProcessorUse, takenByOthers } from '../../../scripts/lib/processor-use.mjs';
import { Chance } from '../lib/chance.mjs';
import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';

const USAGE = `usage: node tests/tools/platform/fault-run.mjs [--kills N] [--seconds N] [--edge-kills N] [--seed N]
33 kills at random in 180 seconds, after 3 kills of the edge alone: 4 minutes. The same seed kills the same programs at the same times.`;

const GAP_MS = 10_000;
const REFUSED_MS = 1500;
const SERVED_MS = 2500;
/**
 * Pause between kills. Afterwards a session counts as stable, but the supervisor still remembers previous restarts: it restarts a part at
 * once only twice a minute.
 */
const CALM_MS = 6000;
/** Share of the processor used by other programs above which durations are not judged. */
const BUSY_SHARE = 0.1;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

await runScript(
  {
    name: 'fault run',
    usage: USAGE,
    options: { kills: 33, seconds: 180, 'edge-kills': 3, seed: Date.now() % 1_000_000 },
    limitSecs: ({ seconds, 'edge-kills': edgeKills }) => 300 + seconds + 60 * edgeKills,
  },
  async ({ values: { kills, seconds, 'edge-kills': edgeKills, seed }, say, check }) => {
    const { FaultRun, VICTIMS } = await loadBundled(
      new URL('../../system/fault-run.fixture.ts', import.meta.url),
      'fault-run',
    );
    const chance = new Chance(seed);
    say(`seed ${seed}, load ${loadavg()[0].toFixed(1)}`);
    const use = readProcessorUse();
    const run = await FaultRun.open();
    const times = [];
    let results;
    try {
      for (let kill = 0; kill < edgeKills; kill += 1) {
        await pause(CALM_MS);
        const { refusedMs, servedMs } = await run.killEdge();
        times.push([refusedMs, servedMs]);
        say(
          `the edge alone: refused for ${Math.round(refusedMs)} ms, served after ${Math.round(servedMs)} ms, load ${loadavg()[0].toFixed(1)}`,
        );
        // The supervisor delays the restart after a third kill within a minute, so the script waits.
        if (kill % 2 === 1) await pause(60_000);
      }
      await pause(CALM_MS);
      const began = performance.now();
      const dueMs = Array.from({ length: kills }, () => chance.next() * seconds * 1000).sort((a, b) => a - b);
      for (const due of dueMs) {
        const victim = chance.of(VICTIMS);
        const which = chance.next();
        await pause(Math.max(0, began + due - performance.now()));
        await run.kill(victim, which);
        say(`killed: ${victim}, load ${loadavg()[0].toFixed(1)}`);
      }
      await run.serves();
      results = await run.results();
    } finally {
      await run.close();
    }
    // Programs of this run are attributed correctly only after they have ended.
    const others = takenByOthers(use, readProcessorUse());
    const isBusy = others > BUSY_SHARE;
    const judge = (isRight, what) => {
      if (isBusy && !isRight)
        say(`${what}; not judged, for others used ${Math.round(others * 100)} % of the processor`);
      else check(isRight, what);
    };
    if (times.length > 0) {
      const [refused, served] = [0, 1].map((at) => Math.round(median(times.map((time) => time[at]))));
      judge(refused <= REFUSED_MS, `a killed edge refuses connections for ${refused} ms in half of ${edgeKills} kills`);
      judge(served <= SERVED_MS, `its tunnels serve again after ${served} ms in half of ${edgeKills} kills`);
    }
    for (const [index, result] of results.entries()) {
      const { gapMs, killed, billed, least, most, whole } = result;
      const who = `tenant ${index}`;
      judge(gapMs <= GAP_MS, `${who}: the longest gap is ${Math.round(gapMs)} ms (killed: ${killed.join(', ')})`);
      check(billed <= most, `${who}: nothing is billed twice: ${billed} of at most ${most} requests`);
      check(
        billed >= least,
        `${who}: ${whole - billed} of ${whole} requests are not billed, at most ${whole - least} may be`,
      );
    }
    return `${kills} kills in ${seconds} s, seed ${seed}, gaps ${results.map(({ gapMs }) => `${Math.round(gapMs)} ms`).join(' and ')}`;
  },
);
