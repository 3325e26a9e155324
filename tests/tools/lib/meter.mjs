// Preloaded into an edge or a client (node --import). Reports memory and processor time of the process on request of metered-child.mjs.

const countsOf = (names) => {
  const counts = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};

const read = {
  /** Memory after garbage collections, so that only referenced memory counts. */
  memory: () => {
    for (let count = 0; count < 4; count += 1) globalThis.gc();
    const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage();
    return { heldBytes: heapUsed + external, heapUsed, external, arrayBuffers, rss };
  },
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return { userMs: user / 1000, systemMs: system / 1000, totalMs: (user + system) / 1000 };
  },
  /** Open sockets, servers, timers and other resources, counted by kind. */
  handles: () => countsOf(process.getActiveResourcesInfo()),
};

process.on('message', ({ id, what }) => process.send?.({ id, value: read[what]() }));
// The channel must not keep the program running.
process.channel?.unref();
