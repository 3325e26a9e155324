// The dashboard at its size: 10,000 tunnels in the history (rows in a real database) and 200 pools with 50 members each
// (answered in front of the platform by a scripted route). How long each interaction takes, and what holds up scrolling.
import { runScript } from '../groups/lib/script.mjs';
import { loadTypescript } from './lib/load-typescript.mjs';

const USAGE = `usage: node tests/tools/dashboard/scale.mjs [--tunnels N] [--pools N] [--members N]
Every interaction is painted within 100 ms. Figures of time are those of the machine, too: let it be calm.`;

await runScript(
  {
    name: 'the dashboard at its size',
    usage: USAGE,
    options: { tunnels: 10_000, pools: 200, members: 50 },
    limitSecs: () => 600,
  },
  async (tools) => (await loadTypescript('try-scale')).tryScale(tools),
);
