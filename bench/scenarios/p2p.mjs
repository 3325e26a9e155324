// P2P tunnels over the relay and over a direct path, compared with a tcp tunnel of the same build: the cost of encryption, and the
// benefit of the direct path.
import { PEAK_MEMORY, perUnitUs } from './figures.mjs';
import { BULK_FIGURES, measureBulk } from './measures.mjs';

const BYTES = 6e8;
const QUICK_BYTES = 1.5e8;
const WARM_UP_SHARE = 0.25;

const bulk = ({ name, title, path, targets }) => ({
  name,
  title,
  paths: ['ours', path],
  yardstick: 'ours',
  figures: BULK_FIGURES,
  targets,
  measure(stage) {
    const wanted = stage.quick ? QUICK_BYTES : BYTES;
    const parameters = { direction: 'down', streams: 1, bytes: wanted, warmUpBytes: wanted * WARM_UP_SHARE };
    return measureBulk(stage, parameters);
  },
});

const relay = bulk({
  name: 'p2p-relay',
  title: 'P2P, bulk download over the relay, compared with a tcp tunnel',
  path: 'ours-relay',
  targets: [{ path: 'ours-relay', figure: 'cpuPerGb', ratioAtMost: 2.5 }],
});

const direct = bulk({
  name: 'p2p-direct',
  title: 'P2P, bulk download over a direct path, compared with a tcp tunnel',
  path: 'ours-direct',
  targets: [{ path: 'ours-direct', figure: 'mbPerSecond', atLeast: 60 }],
});

/** A single connection, because with more connections the wait for a core would be most of the delay. */
const echo = {
  name: 'p2p-echo',
  title: 'P2P, round trips of 128 bytes on one connection over a direct path, compared with a tcp tunnel',
  paths: ['ours', 'ours-direct'],
  yardstick: 'ours',
  figures: ['delayMs', 'p99Ms', 'cpuPerRoundTripUs', 'roundTripsPerSecond', ...PEAK_MEMORY],
  targets: [{ path: 'ours-direct', figure: 'delayMs', ratioAtMost: 1.5 }],
  async measure(stage) {
    const [warmUpMs, measureMs] = stage.quick ? [300, 700] : [800, 2500];
    const parameters = { connections: 1, warmUpMs, measureMs };
    const { roundTrips, seconds, p50Ms, p99Ms, cpu, window } = await stage.measure('echo', parameters);
    return {
      delayMs: p50Ms,
      p99Ms,
      cpuPerRoundTripUs: perUnitUs(cpu.both, roundTrips),
      roundTripsPerSecond: roundTrips / seconds,
      ...stage.peakMemory(),
      window,
    };
  },
};

export const p2pScenarios = [relay, direct, echo];
