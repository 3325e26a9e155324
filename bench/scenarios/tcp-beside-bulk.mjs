// Duration of small round trips while a different visitor of the same client downloads continuously.
import { mbPerSecond, PEAK_MEMORY } from './figures.mjs';

export const tcpBesideBulk = {
  name: 'tcp-beside-bulk',
  title: 'TCP, round trips of 128 bytes on 4 connections during a bulk download of the same client',
  figures: ['p50Ms', 'p99Ms', 'roundTripsPerSecond', 'mbPerSecond', ...PEAK_MEMORY],
  targets: [
    { path: 'ours', figure: 'p99Ms', atMost: 15 },
    { path: 'ours-tls', figure: 'p99Ms', atMost: 15 },
  ],
  async measure(stage) {
    const bulk = await stage.beginBeside('endless');
    const { roundTrips, seconds, p50Ms, p99Ms, window } = await stage.measure('echo', {
      connections: 4,
      warmUpMs: stage.quick ? 300 : 800,
      measureMs: stage.quick ? 800 : 2500,
    });
    const beside = await bulk.finish();
    return {
      p50Ms,
      p99Ms,
      roundTripsPerSecond: roundTrips / seconds,
      mbPerSecond: mbPerSecond(beside.bytes, beside.seconds),
      ...stage.peakMemory(),
      window,
    };
  },
};
