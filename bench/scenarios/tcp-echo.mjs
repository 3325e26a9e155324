// Small round trips on 50 persistent connections.
import { PEAK_MEMORY, perUnitUs } from './figures.mjs';

export const tcpEcho = {
  name: 'tcp-echo-50',
  title: 'TCP, round trips of 128 bytes on 50 persistent connections',
  figures: ['roundTripsPerSecond', 'cpuPerRoundTripUs', 'edgeCpuPerRoundTripUs', 'p50Ms', 'p99Ms', ...PEAK_MEMORY],
  targets: [{ path: 'ours', figure: 'cpuPerRoundTripUs', ratioAtMost: 1.2 }],
  async measure(stage) {
    const [warmUpMs, measureMs] = stage.quick ? [300, 700] : [800, 2500];
    const { roundTrips, seconds, p50Ms, p99Ms, cpu, window } = await stage.measure('echo', {
      connections: 50,
      warmUpMs,
      measureMs,
    });
    return {
      roundTripsPerSecond: roundTrips / seconds,
      cpuPerRoundTripUs: perUnitUs(cpu.both, roundTrips),
      edgeCpuPerRoundTripUs: perUnitUs(cpu.edge, roundTrips),
      p50Ms,
      p99Ms,
      ...stage.peakMemory(),
      window,
    };
  },
};
