// A connection per request: connect, 128 bytes in both directions, close; 20 at a time.
import { PEAK_MEMORY, perUnitUs } from './figures.mjs';

export const tcpConnect = {
  name: 'tcp-connect',
  title: 'TCP, a new connection per request',
  figures: ['requestsPerSecond', 'cpuPerRoundTripUs', 'edgeCpuPerRoundTripUs', 'p50Ms', 'p99Ms', ...PEAK_MEMORY],
  targets: [],
  async measure(stage) {
    const { requests, seconds, p50Ms, p99Ms, cpu, window } = await stage.measure('connect', {
      concurrency: 20,
      warmUpRequests: stage.quick ? 500 : 2000,
      requests: stage.quick ? 1500 : 6000,
    });
    return {
      requestsPerSecond: requests / seconds,
      cpuPerRoundTripUs: perUnitUs(cpu.both, requests),
      edgeCpuPerRoundTripUs: perUnitUs(cpu.edge, requests),
      p50Ms,
      p99Ms,
      ...stage.peakMemory(),
      window,
    };
  },
};
