// HTTP/1.1: small requests on keep-alive connections and with a connection per request, large responses, and the cost of captures.
import { mbPerSecond, PEAK_MEMORY, perGb, perUnitUs } from './figures.mjs';

const SMALL_BYTES = 128;
const LARGE_BYTES = 1_000_000;

export const PER_REQUEST = [
  'requestsPerSecond',
  'cpuPerRequestUs',
  'edgeCpuPerRequestUs',
  'p50Ms',
  'p99Ms',
  ...PEAK_MEMORY,
];

/** Measures requests with wrk. Responses are compared before and afterwards, because wrk only counts responses and errors. */
async function measureRequests(stage, { connections, bytes, keepAlive, headers, warmUpRequests, warmUpRuns }) {
  const probe = async () => (await stage.begin('httpProbe', { bytes, keepAlive, headers })).finish();
  await probe();
  const measured = await stage.measure('wrk', {
    command: stage.tools.wrk.command,
    connections,
    bytes,
    keepAlive,
    headers,
    warmUpRequests: stage.quick ? warmUpRequests / 10 : warmUpRequests,
    warmUpRuns,
    seconds: stage.seconds ?? (stage.quick ? 1 : 4),
  });
  await probe();
  return measured;
}

/** Measures the cost of a small GET. */
export async function measureSmallRequests(stage, asked) {
  const measured = await measureRequests(stage, { bytes: SMALL_BYTES, warmUpRequests: 20_000, ...asked });
  const { requests, seconds, p50Ms, p99Ms, cpu, window } = measured;
  return {
    requestsPerSecond: requests / seconds,
    cpuPerRequestUs: perUnitUs(cpu.both, requests),
    edgeCpuPerRequestUs: perUnitUs(cpu.edge, requests),
    p50Ms,
    p99Ms,
    ...stage.peakMemory(),
    window,
  };
}

const smallRequests = ({ name, title, connections, keepAlive, ...more }) => ({
  name,
  title,
  protocol: 'http',
  needs: ['wrk'],
  figures: PER_REQUEST,
  ...more,
  measure: (stage) => measureSmallRequests(stage, { connections, keepAlive }),
});

const keepAlive = (connections) =>
  smallRequests({
    name: `http-keep-alive-${connections}`,
    title: `HTTP, small GETs on ${connections} keep-alive connections`,
    connections,
    keepAlive: true,
    targets: [
      { path: 'ours', figure: 'cpuPerRequestUs', ratioAtMost: 1 },
      { path: 'ours-tls', figure: 'cpuPerRequestUs', ratioAtMost: 1.3 },
    ],
  });

const connect = (connections) =>
  smallRequests({
    name: `http-connect-${connections}`,
    title: `HTTP, a new connection per small GET, ${connections} at a time`,
    connections,
    keepAlive: false,
    targets: [{ path: 'ours', figure: 'cpuPerRequestUs', ratioAtMost: 4.5, ratioAtMostFromNode24: 3 }],
  });

const large = {
  name: 'http-large',
  title: 'HTTP, responses of 1 MB on 50 keep-alive connections',
  protocol: 'http',
  needs: ['wrk'],
  figures: ['mbPerSecond', 'cpuPerGb', 'edgeCpuPerGb', 'p50Ms', 'p99Ms', ...PEAK_MEMORY],
  targets: [],
  async measure(stage) {
    const asked = { connections: 50, bytes: LARGE_BYTES, keepAlive: true, warmUpRequests: 500 };
    const measured = await measureRequests(stage, asked);
    const { bytes, seconds, p50Ms, p99Ms, cpu, window } = measured;
    return {
      mbPerSecond: mbPerSecond(bytes, seconds),
      cpuPerGb: perGb(cpu.both, bytes),
      edgeCpuPerGb: perGb(cpu.edge, bytes),
      p50Ms,
      p99Ms,
      ...stage.peakMemory(),
      window,
    };
  },
};

const captures = smallRequests({
  name: 'http-captures',
  title: 'HTTP, cost of captures: small GETs on 50 keep-alive connections',
  connections: 50,
  keepAlive: true,
  paths: ['ours-uncaptured', 'ours'],
  yardstick: 'ours-uncaptured',
  targets: [{ path: 'ours', figure: 'cpuPerRequestUs', ratioAtMost: 1.1 }],
});

export const httpScenarios = [keepAlive(50), keepAlive(200), connect(50), connect(200), large, captures];
