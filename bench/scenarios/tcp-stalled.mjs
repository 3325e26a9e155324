// A session with 2,000 stalled readers: the memory that they use, and the speed for an additional visitor of the same client.
import { setTimeout as delay } from 'node:timers/promises';
import { mbPerSecond, PEAK_MEMORY } from './figures.mjs';

const LOOK_EVERY_MS = 500;
const STILL_FOR_LOOKS = 3;
const LOOKS_MAX = 120;
const MB = 1e6;

// On the machine's own network the bytes per source are limited, because the kernel would otherwise buffer several MB for every reader.
const OWN_NETWORK = { readers: 2000, quickReaders: 500, bytesEach: Number.MAX_SAFE_INTEGER };
const SHARED_NETWORK = { readers: 200, quickReaders: 200, bytesEach: 2 * 1024 * 1024 };

export const tcpStalled = {
  name: 'tcp-stalled-2000',
  title: 'TCP, a visitor while 2,000 visitors of the same client have stopped reading',
  quickTitle: 'TCP, one more visitor beside 500 stalled readers of the same client',
  network: 'small-buffers',
  withoutNetwork: 'no network of its own (that needs root): 200 stalled readers with 2 MiB each instead of 2,000',
  paths: ['nginx', 'ours', 'ours-tls'],
  figures: ['edgeMb', 'clientMb', 'mbPerSecond', 'p50Ms', 'p99Ms', ...PEAK_MEMORY],
  targets: [],
  async measure(stage) {
    const scale = stage.ground.network.name === 'loopback' ? SHARED_NETWORK : OWN_NETWORK;
    const before = stage.memory();
    const stalled = await stage.beginBeside('stall', {
      readers: stage.quick ? scale.quickReaders : scale.readers,
      bytesEach: scale.bytesEach,
    });
    await untilStuck(stage.ground);
    const after = stage.memory();
    const bytes = stage.quick ? 2e7 : 1e8;
    const bulk = await stage.measure('bulk', { direction: 'down', streams: 1, bytes, warmUpBytes: bytes / 10 });
    const measureMs = stage.quick ? 300 : 1000;
    const { p50Ms, p99Ms } = await stage.measure('echo', { connections: 1, warmUpMs: 100, measureMs });
    await stalled.finish();
    return {
      edgeMb: (after.edge.now - before.edge.now) / MB,
      clientMb: (after.client.now - before.client.now) / MB,
      mbPerSecond: mbPerSecond(bulk.bytes, bulk.seconds),
      p50Ms,
      p99Ms,
      ...stage.peakMemory(),
      window: bulk.window,
    };
  },
};

/** Waits until the origin can send nothing more, because every buffer between it and the readers is full. */
async function untilStuck(ground) {
  let last = -1;
  let still = 0;
  for (let look = 0; look < LOOKS_MAX && still < STILL_FOR_LOOKS; look++) {
    await delay(LOOK_EVERY_MS);
    const sent = await ground.bytesSent();
    still = sent === last ? still + 1 : 0;
    last = sent;
  }
  if (still < STILL_FOR_LOOKS) throw new Error('stalled readers still took bytes after a minute');
}
