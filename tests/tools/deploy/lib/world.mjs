// Runs a part of world.ts in this process, which `ip netns exec` has started in a network namespace, and answers calls over the IPC channel.
import { loadBundled } from '../../lib/load-bundled.mjs';

const [, , part, options] = process.argv;
const parts = await loadBundled(new URL('../world.ts', import.meta.url), `deploy-${part}`);
const calls = await parts[part](JSON.parse(options));

async function answer({ id, name, args }) {
  try {
    process.send({ id, value: await calls[name](...args) });
  } catch (error) {
    process.send({ id, error: error.message });
  }
}

process.on('message', (call) => void answer(call));
process.on('disconnect', () => process.exit());
process.send({ id: 0 });
