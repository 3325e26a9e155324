// Datagrams: small requests of many visitors, and a one-way flood. `ours` uses carriers, and `ours-sealed` the UDP path between edge and
// client.
import { mbPerSecond, PEAK_MEMORY, perGb, perUnitUs } from './figures.mjs';

const PATHS = ['direct', 'nginx', 'ours', 'ours-sealed'];
const VISITORS = 64;
const SMALL_BYTES = 64;
/** Size of a QUIC or WireGuard packet. */
const LARGE_BYTES = 1200;
const FLOOD_BYTES = LARGE_BYTES;
const LOST_SHARE_MAX = 0.001;
/** First rate of the flood. Each further rate is a quarter higher. */
const FIRST_PER_SECOND = 4000;
const STEP = 1.25;
const STEPS_MAX = 20;

const echoScenario = ({ name, title, bytes, visitors, targets = [] }) => ({
  name,
  title,
  protocol: 'udp',
  paths: PATHS,
  figures: ['roundTripsPerSecond', 'cpuPerDatagramUs', 'edgeCpuPerDatagramUs', 'p50Ms', 'p99Ms', ...PEAK_MEMORY],
  targets,
  async measure(stage) {
    const [warmUpMs, measureMs] = stage.quick ? [500, 1000] : [1500, 3000];
    const measured = await stage.measure('datagramEcho', { visitors, bytes, warmUpMs, measureMs });
    const { roundTrips, seconds, p50Ms, p99Ms, cpu, window } = measured;
    return {
      roundTripsPerSecond: roundTrips / seconds,
      // A round trip is two datagrams: a request and its response.
      cpuPerDatagramUs: perUnitUs(cpu.both, 2 * roundTrips),
      edgeCpuPerDatagramUs: perUnitUs(cpu.edge, 2 * roundTrips),
      p50Ms,
      p99Ms,
      ...stage.peakMemory(),
      window,
    };
  },
});

const udpEcho = echoScenario({
  name: 'udp-echo',
  title: `UDP, requests of ${SMALL_BYTES} bytes from ${VISITORS} visitors, one at a time per visitor`,
  bytes: SMALL_BYTES,
  visitors: VISITORS,
  targets: [
    { path: 'ours', figure: 'cpuPerDatagramUs', ratioAtMost: 2.5 },
    { path: 'ours-sealed', figure: 'cpuPerDatagramUs', ratioAtMost: 2.5 },
  ],
});

const udpLarge = echoScenario({
  name: 'udp-large',
  title: `UDP, requests of ${LARGE_BYTES} bytes from ${VISITORS} visitors, one at a time per visitor`,
  bytes: LARGE_BYTES,
  visitors: VISITORS,
});

const udpOne = echoScenario({
  name: 'udp-one',
  title: `UDP, requests of ${SMALL_BYTES} bytes from one visitor, one at a time`,
  bytes: SMALL_BYTES,
  visitors: 1,
});

const udpFlood = {
  name: 'udp-flood',
  title: 'UDP, datagrams of 1,200 bytes in one direction, highest rate with under 0.1 % loss',
  protocol: 'udp',
  paths: PATHS,
  figures: ['datagramsPerSecond', 'usPerDatagram', 'mbPerSecond', 'cpuPerGb', 'edgeCpuPerGb', ...PEAK_MEMORY],
  // At least half of the yardstick's rate.
  targets: [{ path: 'ours', figure: 'usPerDatagram', ratioAtMost: 2 }],
  async measure(stage) {
    const measureMs = stage.quick ? 500 : 1000;
    let best = null;
    for (let step = 0, perSecond = FIRST_PER_SECOND; step < STEPS_MAX; step += 1, perSecond *= STEP) {
      const tried = await floodTwice(stage, { bytes: FLOOD_BYTES, perSecond, measureMs });
      if (tried === null) break;
      best = tried;
    }
    if (best === null) throw new Error(`${FIRST_PER_SECOND} datagrams a second are too many`);
    const bytes = best.arrived * FLOOD_BYTES;
    return {
      datagramsPerSecond: best.arrived / best.seconds,
      usPerDatagram: (best.seconds / best.arrived) * 1e6,
      mbPerSecond: mbPerSecond(bytes, best.seconds),
      cpuPerGb: perGb(best.cpu.both, bytes),
      edgeCpuPerGb: perGb(best.cpu.edge, bytes),
      ...stage.peakMemory(),
      window: best.window,
    };
  },
};

let lastRun = 0;

/**
 * Measures a rate, with a retry in case the machine stalled for a moment. Returns null if too many datagrams are lost, or if the sender
 * is too slow.
 */
async function floodTwice(stage, asked) {
  for (let tried = 0; tried < 2; tried += 1) {
    lastRun += 1;
    const measured = await stage.measure('datagramFlood', { ...asked, run: lastRun });
    if (1 - measured.arrived / measured.sent < LOST_SHARE_MAX) return measured;
  }
  return null;
}

export const udpScenarios = [udpEcho, udpLarge, udpOne, udpFlood];
