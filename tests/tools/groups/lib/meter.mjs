// Loaded into an edge before its program (node --import): tells what the process holds and has used, when it is asked.
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How late turns of the loop were, and what the process used between two of them; it costs a little, so it is begun when it is asked for. */
const TURN_MS = 2;
const loop = { delays: monitorEventLoopDelay({ resolution: TURN_MS }), maxCpuMs: 0, timer: null };
const watchLoop = () => {
  const cpuMs = () => Object.values(process.cpuUsage()).reduce((sum, micros) => sum + micros, 0) / 1000;
  let before = cpuMs();
  clearInterval(loop.timer);
  loop.delays.enable();
  loop.delays.reset();
  loop.maxCpuMs = 0;
  loop.timer = setInterval(() => {
    const now = cpuMs();
    loop.maxCpuMs = Math.max(loop.maxCpuMs, now - before);
    before = now;
  }, TURN_MS).unref();
};

const countsOf = (names) => {
  const counts = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};

const read = {
  /** After collections, so that only what is held is counted. */
  memory: () => {
    for (let count = 0; count < 4; count += 1) globalThis.gc();
    const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage();
    return { heldBytes: heapUsed + external, heapUsed, external, arrayBuffers, rss };
  },
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return { userMs: user / 1000, systemMs: system / 1000, totalMs: (user + system) / 1000 };
  },
  /** Sockets, servers, timers, … that are alive, by kind. */
  handles: () => countsOf(process.getActiveResourcesInfo()),
  watchLoop: () => watchLoop(),
  /** Since it is watched. */
  loop: () => ({ maxMs: loop.delays.max / 1e6, p99Ms: loop.delays.percentile(99) / 1e6, maxCpuMs: loop.maxCpuMs }),
};

process.on('message', ({ id, what }) => process.send?.({ id, value: read[what]() }));
// The program's own end must not wait for questions.
process.channel?.unref();
