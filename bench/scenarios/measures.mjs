// Measurements that several scenarios share.
import { mbPerSecond, PEAK_MEMORY, perGb, perUnitUs } from './figures.mjs';

export const BULK_FIGURES = ['mbPerSecond', 'cpuPerGb', 'edgeCpuPerGb', ...PEAK_MEMORY];

export async function measureBulk(stage, parameters) {
  const { bytes, seconds, cpu, window } = await stage.measure('bulk', parameters);
  return {
    mbPerSecond: mbPerSecond(bytes, seconds),
    cpuPerGb: perGb(cpu.both, bytes),
    edgeCpuPerGb: perGb(cpu.edge, bytes),
    ...stage.peakMemory(),
    window,
  };
}

export const CONNECT_FIGURES = [
  'requestsPerSecond',
  'cpuPerRoundTripUs',
  'edgeCpuPerRoundTripUs',
  'p50Ms',
  'p99Ms',
  ...PEAK_MEMORY,
];

/** Measures requests with a new connection each, 20 at a time. */
export async function measureConnect(stage, wanted) {
  const { requests, seconds, p50Ms, p99Ms, cpu, window } = await stage.measure('connect', {
    concurrency: 20,
    warmUpRequests: stage.quick ? 500 : 2000,
    requests: stage.quick ? 1500 : wanted,
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
}
