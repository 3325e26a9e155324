// The rows: the measurements of every peer. They are scenarios like those in bench/scenarios, but run for a time instead of a number of
// bytes, because some peers are twenty times slower than others. `takes` selects paths, `meaning` describes the row for users of a
// tunnel, `rank` is the figure that sorts the paths, and `yardstick` is the path with which this figure is compared.
import { setTimeout as delay } from 'node:timers/promises';
import { mbPerSecond, PEAK_MEMORY, perGb } from '../scenarios/figures.mjs';
import { measureSmallRequests } from '../scenarios/http.mjs';

const VISITORS = 50;
const IDLE = 5000;
const QUICK_IDLE = 300;
const IDLE_FIRST = 100;
const SETTLE_MS = 1000;
const WARM_UP_RUNS = 4;
const SMALL_BYTES = 64;

const isTcp = ({ protocol }) => protocol === 'tcp';
const isHttp = ({ protocol, visitorsTls }) => protocol === 'http' && !visitorsTls;
const isHttps = ({ visitorsTls }) => Boolean(visitorsTls);
/** Selects edges that parse HTTP, and for comparison the cheapest tunnel that does not. */
const isHttpOrRathole = (path) => isHttp(path) || path.name === 'rathole';

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
  async measure(stage) {
    const parameters = { direction, warmUpSeconds: stage.quick ? 0.3 : 0.8, seconds: stage.seconds };
    const { bytes, seconds, cpu, window } = await stage.measure('bulk', parameters);
    return {
      mbPerSecond: mbPerSecond(bytes, seconds),
      cpuPerGb: perGb(cpu.both, bytes),
      edgeCpuPerGb: perGb(cpu.edge, bytes),
      ...stage.peakMemory(),
      window,
    };
  },
});

const requests = ({ keepAlive, ...row }) => ({
  ...row,
  rank: 'cpuPerRequestUs',
  needs: ['wrk'],
  figures: ['cpuPerRequestUs', 'edgeCpuPerRequestUs', 'requestsPerSecond', 'p50Ms', 'p99Ms', ...PEAK_MEMORY],
  measure: (stage) => measureSmallRequests(stage, { connections: VISITORS, keepAlive, warmUpRuns: WARM_UP_RUNS }),
});

const KEPT = `small GETs on ${VISITORS} keep-alive connections`;
const ANEW = `a new connection per small GET, ${VISITORS} at a time`;

const idle = {
  name: 'tcp-idle',
  title: `Memory of ${IDLE.toLocaleString('en')} idle connections`,
  meaning: 'for example chats, notifications or database connections: open all day, mostly silent',
  takes: isTcp,
  rank: 'kbPerConnection',
  yardstick: 'nginx',
  figures: ['kbPerConnection', 'edgeKbPerConnection', 'clientKbPerConnection', 'edgeRestMb', 'clientRestMb'],
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
      edgeRestMb: before.edge.now / 1e6,
      clientRestMb: before.client.now / 1e6,
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

export const ROWS = [
  bulk('down'),
  bulk('up'),
  requests({
    name: 'tcp-keep-alive',
    title: `TCP tunnels: ${KEPT}`,
    keepAlive: true,
    takes: isTcp,
    yardstick: 'nginx',
    meaning: 'for example an API behind a TCP tunnel, or short database queries',
  }),
  requests({
    name: 'tcp-connect',
    title: `TCP tunnels: ${ANEW}`,
    keepAlive: false,
    takes: isTcp,
    yardstick: 'nginx',
    meaning: 'for example webhooks, health checks or clients without keep-alive',
  }),
  requests({
    name: 'http-keep-alive',
    title: `HTTP edges: ${KEPT}`,
    keepAlive: true,
    takes: isHttpOrRathole,
    yardstick: 'nginx-http',
    meaning: 'for example a page with 50 assets',
  }),
  requests({
    name: 'http-connect',
    title: `HTTP edges: ${ANEW}`,
    keepAlive: false,
    takes: isHttpOrRathole,
    yardstick: 'nginx-http',
    meaning: 'for example webhooks to a hostname, or first-time visitors',
  }),
  requests({
    name: 'https-keep-alive',
    title: `HTTPS visitors: ${KEPT}`,
    keepAlive: true,
    takes: isHttps,
    yardstick: 'bare-tls',
    meaning: 'a page with 50 assets over TLS, as browsers request it',
  }),
  requests({
    name: 'https-connect',
    title: `HTTPS visitors: ${ANEW}`,
    keepAlive: false,
    takes: isHttps,
    yardstick: 'bare-tls',
    meaning: 'a full TLS handshake per request: the cost of a first visit',
  }),
  idle,
  besideBulk,
];
