// Loaded into an edge or a client before its program (node --import): tells what the process holds and has used, when metered-child.mjs asks.

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
};

process.on('message', ({ id, what }) => process.send?.({ id, value: read[what]() }));
// The program's own end must not wait for questions.
process.channel?.unref();
