// Rows of UDP tunnels: visitors with one question under way each.
import { PEAK_MEMORY, perUnitUs } from '../../scenarios/figures.mjs';
import { isUdp, plainName } from './takes.mjs';

/** rustunnel delays each answer by 44 ms if there is only one visitor, so its processor time cannot be read. */
const isUdpOfOne = (path) => isUdp(path) && plainName(path) !== 'rustunnel-udp';

const datagrams = ({ name, bytes, visitors, takes = isUdp, meaning }) => ({
  name,
  title: `UDP: questions of ${bytes.toLocaleString('en')} bytes from ${visitors === 1 ? 'one visitor' : `${visitors} visitors`}, one at a time per visitor`,
  meaning,
  takes,
  rank: 'cpuPerDatagramUs',
  yardstick: 'nginx-udp',
  figures: [
    ...['cpuPerDatagramUs', 'edgeCpuPerDatagramUs', 'roundTripsPerSecond', 'p50Ms', 'p99Ms', 'lostPercent'],
    ...PEAK_MEMORY,
  ],
  async measure(stage) {
    const parameters = { bytes, visitors, warmUpSeconds: stage.quick ? 0.3 : 0.8, seconds: stage.seconds };
    const { roundTrips, seconds, p50Ms, p99Ms, lostPercent, cpu, window } = await stage.measure(
      'datagrams',
      parameters,
    );
    return {
      roundTripsPerSecond: roundTrips / seconds,
      // A round trip is two datagrams: a question and its answer.
      cpuPerDatagramUs: perUnitUs(cpu.both, 2 * roundTrips),
      edgeCpuPerDatagramUs: perUnitUs(cpu.edge, 2 * roundTrips),
      p50Ms,
      p99Ms,
      lostPercent,
      ...stage.peakMemory(),
      window,
    };
  },
});

export const udpRows = [
  datagrams({ name: 'udp-64', bytes: 64, visitors: 64, meaning: 'for example DNS or a game with many players' }),
  datagrams({ name: 'udp-1200', bytes: 1200, visitors: 64, meaning: 'for example QUIC or WireGuard' }),
  datagrams({
    name: 'udp-one',
    bytes: 64,
    visitors: 1,
    takes: isUdpOfOne,
    meaning: 'for example one player: nothing can be batched, so each datagram pays for its system calls',
  }),
];
