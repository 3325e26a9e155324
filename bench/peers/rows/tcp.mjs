// Rows of TCP tunnels without HTTP: bulk, idle connections, and small messages during bulk.
import { setTimeout as delay } from 'node:timers/promises';
import { PEAK_MEMORY } from '../../scenarios/figures.mjs';
import { measureBulk } from '../../scenarios/measures.mjs';
import { isTcp } from './takes.mjs';

const IDLE = 5000;
const QUICK_IDLE = 300;
const IDLE_FIRST = 100;
const SETTLE_MS = 1000;
const SMALL_BYTES = 64;

const bulk = (direction) => ({
  name: `tcp-bulk-${direction}`,
  title: `Bulk ${direction === 'down' ? 'download' : 'upload'}, one stream`,
  meaning:
    direction === 'down'
      ? 'for example a video, a disk image or a database dump'
      : 'for example a backup or a photo upload',
  takes: isTcp,
  rank: 'cpuPerGb',
  yardstick: 'nginx',
  figures: ['cpuPerGb', 'edgeCpuPerGb', 'mbPerSecond', ...PEAK_MEMORY],
  measure(stage) {
    const parameters = { direction, warmUpSeconds: stage.quick ? 0.3 : 0.8, seconds: stage.seconds };
    return measureBulk(stage, parameters);
  },
});

const idle = {
  name: 'tcp-idle',
  title: `Memory of ${IDLE.toLocaleString('en')} idle connections`,
  meaning: 'for example chats, notifications or database connections: open all day, mostly silent',
  takes: isTcp,
  rank: 'kbPerConnection',
  yardstick: 'nginx',
  figures: ['kbPerConnection', 'edgeKbPerConnection', 'clientKbPerConnection'],
  async measure(stage) {
    const connections = Math.min(stage.quick ? QUICK_IDLE : IDLE, stage.path.idleMax ?? IDLE);
    // The first connections of a process have a one-time cost that is not part of the memory per connection.
    await (await stage.begin('hold', { connections: IDLE_FIRST })).finish();
    await delay(SETTLE_MS);
    const before = stage.memory();
    const held = await stage.begin('hold', { connections });
    await delay(SETTLE_MS);
    const after = stage.memory();
    await held.finish();
    const kbEach = (role) => (after[role].now - before[role].now) / 1000 / connections;
    return {
      kbPerConnection: kbEach('edge') + kbEach('client'),
      edgeKbPerConnection: kbEach('edge'),
      clientKbPerConnection: kbEach('client'),
    };
  },
};

const besideBulk = {
  name: 'tcp-beside-bulk',
  title: `Round trips of ${SMALL_BYTES} bytes during a bulk download of the same client`,
  meaning: 'for example a shell or a database query during a large download',
  takes: isTcp,
  rank: 'p99Ms',
  figures: ['p50Ms', 'p99Ms', 'roundTripsPerSecond', 'mbPerSecond', 'shareOfAlone'],
  async measure(stage) {
    const [warmUpSeconds, alone] = stage.quick ? [0.2, 0.3] : [0.8, 1];
    const bulkBeside = await stage.beginBeside('endless', { warmUpSeconds, seconds: alone });
    const talk = { bytes: SMALL_BYTES, warmUpSeconds, seconds: stage.seconds };
    const { roundTrips, seconds, p50Ms, p99Ms, window } = await stage.measure('echo', talk);
    const beside = await bulkBeside.finish();
    const bytesPerSecond = beside.bytes / beside.seconds;
    return {
      p50Ms,
      p99Ms,
      roundTripsPerSecond: roundTrips / seconds,
      mbPerSecond: bytesPerSecond / 1e6,
      shareOfAlone: bytesPerSecond / beside.aloneBytesPerSecond,
      window,
    };
  },
};

export const bulkRows = [bulk('down'), bulk('up')];
export const connectionRows = [idle, besideBulk];
