// Rows of an edge with many tunnels or many clients.
import { setTimeout as delay } from 'node:timers/promises';
import { cpuSeconds, openSockets, residentBytes } from '../../lib/process-table.mjs';
import { perUnitUs } from '../../scenarios/figures.mjs';

const NAMES = 10_000;
const QUICK_NAMES = 500;
const CLIENTS = 500;
const QUICK_CLIENTS = 50;
const SETTLE_MS = 1500;
/** V8 collects the garbage of the start 8 to 10 seconds later. */
const EDGE_SETTLE_MS = 12_000;
/** V8 compiles hot functions and collects the garbage of the opening requests for up to a minute after the clients have connected. */
const CLIENTS_SETTLE_MS = 60_000;
/** The interval in which every carrier is pinged once. */
const REST_SECONDS = 10;
const REQUESTS = { connections: 50, bytes: 128, keepAlive: true, warmUpRequests: 20_000, warmUpRuns: 3 };

/** Opens the tunnels. @returns {Promise<{ openMs: number, kbEach(): number }>} `kbEach` returns the edge's additional memory per tunnel */
async function fill({ way }, count, { beforeMs = SETTLE_MS, afterMs = SETTLE_MS } = {}) {
  const edgeBytes = () => residentBytes(way.processes.edge.pid).now;
  await delay(beforeMs);
  const before = edgeBytes();
  await way.fill({ count });
  const openMs = performance.now() - way.processes.client.startedAt;
  await delay(afterMs);
  return { openMs, kbEach: () => (edgeBytes() - before) / 1000 / count };
}

const names = {
  name: 'names',
  title: `HTTP edges: small GETs to ${NAMES.toLocaleString('en')} tunnels in turn`,
  meaning:
    'for example one server for all branches of a repository; `one name` is the same edge with requests to one of the tunnels',
  takes: ({ protocol }) => protocol === 'names',
  needs: ['wrk'],
  rank: 'cpuPerRequestUs',
  figures: ['cpuPerRequestUs', 'edgeCpuPerRequestUs', 'oneNameCpuPerRequestUs', 'p99Ms', 'openMs', 'kbPerTunnel'],
  async measure(stage) {
    const count = stage.quick ? QUICK_NAMES : NAMES;
    const { openMs, kbEach } = await fill(stage, count);
    const kbPerTunnel = kbEach();
    const ask = (inTurn) =>
      stage.measure('wrk', { ...REQUESTS, command: stage.tools.wrk.command, names: inTurn, seconds: stage.seconds });
    const one = await ask(1);
    const all = await ask(count);
    return {
      cpuPerRequestUs: perUnitUs(all.cpu.both, all.requests),
      edgeCpuPerRequestUs: perUnitUs(all.cpu.edge, all.requests),
      oneNameCpuPerRequestUs: perUnitUs(one.cpu.both, one.requests),
      p99Ms: all.p99Ms,
      openMs,
      kbPerTunnel,
      window: all.window,
    };
  },
};

const clients = {
  name: 'clients',
  title: `${CLIENTS} idle clients`,
  meaning: 'what an edge needs for each connected client without visitors, a minute after the clients have connected',
  takes: ({ protocol }) => protocol === 'clients',
  rank: 'kbPerClient',
  figures: ['kbPerClient', 'socketsPerClient', 'restCpuPercent', 'openMs'],
  async measure(stage) {
    const count = stage.quick ? QUICK_CLIENTS : CLIENTS;
    const { pid } = stage.way.processes.edge;
    const socketsBefore = openSockets(pid);
    const settle = stage.quick ? {} : { beforeMs: EDGE_SETTLE_MS, afterMs: CLIENTS_SETTLE_MS };
    const { openMs, kbEach } = await fill(stage, count, settle);
    const seconds = stage.quick ? 1 : REST_SECONDS;
    const cpuBefore = cpuSeconds(pid);
    await delay(seconds * 1000);
    return {
      kbPerClient: kbEach(),
      socketsPerClient: (openSockets(pid) - socketsBefore) / count,
      restCpuPercent: ((cpuSeconds(pid) - cpuBefore) / seconds) * 100,
      openMs,
    };
  },
};

export const manyRows = [names, clients];
