// TLS of a service behind a tls tunnel, compared with a tcp tunnel that carries the same bytes: the cost to find the host in a
// ClientHello.
import { mbPerSecond, PEAK_MEMORY, perGb, perUnitUs } from './figures.mjs';

const PATHS = {
  paths: ['ours-tcp-of-tls', 'ours-passthrough'],
  yardstick: 'ours-tcp-of-tls',
};

const BYTES = 1e9;
const QUICK_BYTES = 2e8;
const WARM_UP_SHARE = 0.5;

const tlsPassthroughBulk = {
  name: 'tls-passthrough-bulk',
  title: 'TLS passthrough, bulk download, one stream',
  ...PATHS,
  figures: ['mbPerSecond', 'cpuPerGb', 'edgeCpuPerGb', ...PEAK_MEMORY],
  targets: [{ path: 'ours-passthrough', figure: 'cpuPerGb', ratioAtMost: 1.1 }],
  async measure(stage) {
    const wanted = stage.quick ? QUICK_BYTES : BYTES;
    const parameters = { direction: 'down', streams: 1, bytes: wanted, warmUpBytes: wanted * WARM_UP_SHARE };
    const { bytes, seconds, cpu, window } = await stage.measure('bulk', parameters);
    return {
      mbPerSecond: mbPerSecond(bytes, seconds),
      cpuPerGb: perGb(cpu.both, bytes),
      edgeCpuPerGb: perGb(cpu.edge, bytes),
      ...stage.peakMemory(),
      window,
    };
  },
};

const tlsPassthroughConnect = {
  name: 'tls-passthrough-connect',
  title: 'TLS passthrough, a handshake and a round trip of 128 bytes, 20 at a time',
  ...PATHS,
  figures: ['requestsPerSecond', 'cpuPerRoundTripUs', 'edgeCpuPerRoundTripUs', 'p50Ms', 'p99Ms', ...PEAK_MEMORY],
  targets: [{ path: 'ours-passthrough', figure: 'cpuPerRoundTripUs', ratioAtMost: 1.1 }],
  async measure(stage) {
    const { requests, seconds, p50Ms, p99Ms, cpu, window } = await stage.measure('connect', {
      concurrency: 20,
      warmUpRequests: stage.quick ? 500 : 2000,
      requests: stage.quick ? 1500 : 4000,
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

export const tlsPassthroughScenarios = [tlsPassthroughBulk, tlsPassthroughConnect];
