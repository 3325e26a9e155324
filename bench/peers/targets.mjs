// Targets for each row, and whether a run reached them. A target has one or more limits, and is reached if any of them is met:
//   { atMost, fromNode24?, of }  factor of the best of these paths, within each round
//   { atMost } or { atLeast }    absolute value of the figure
//   { atMost, ofFirstNode }      factor of the same path on the first Node.js of the run
import { spread } from '../lib/statistics.mjs';

const TUNNELS = ['rathole', 'bore', 'rustunnel', 'frp', 'frp-plain', 'chisel', 'gost', 'ssh'];
const TLS_TUNNELS = ['rathole-tls', 'rustunnel', 'frp', 'gost-tls'];
const HTTP_EDGES = ['nginx-http', 'frp-http', 'frp-http-plain', 'piko-http'];
const CPU_PER_REQUEST = 'cpuPerRequestUs';

const NEWER_NODES = [
  { row: 'tcp-bulk-down', path: 'ours', figure: 'cpuPerGb' },
  { row: 'tcp-bulk-up', path: 'ours', figure: 'cpuPerGb' },
  { row: 'tcp-keep-alive', path: 'ours', figure: CPU_PER_REQUEST },
  { row: 'tcp-connect', path: 'ours', figure: CPU_PER_REQUEST },
  { row: 'http-keep-alive', path: 'ours-http', figure: CPU_PER_REQUEST },
  { row: 'http-connect', path: 'ours-http', figure: CPU_PER_REQUEST },
].map((target) => ({ ...target, limits: [{ atMost: 1.05, ofFirstNode: true }] }));

const bulk = (row) => [
  { row, path: 'ours', figure: 'cpuPerGb', limits: [{ atMost: 1, of: [...TUNNELS, 'nginx'] }] },
  { row, path: 'ours-tls', figure: 'cpuPerGb', limits: [{ atMost: 1, fromNode24: 0.7, of: ['nginx-tls'] }] },
];

const tcpRequests = (row) => [
  { row, path: 'ours', figure: CPU_PER_REQUEST, limits: [{ atMost: 1, of: TUNNELS }] },
  { row, path: 'ours-tls', figure: CPU_PER_REQUEST, limits: [{ atMost: 1, of: TLS_TUNNELS }] },
];

export const TARGETS = [
  ...bulk('tcp-bulk-down'),
  ...bulk('tcp-bulk-up'),
  ...tcpRequests('tcp-keep-alive'),
  ...tcpRequests('tcp-connect'),
  { row: 'http-keep-alive', path: 'ours-http', figure: CPU_PER_REQUEST, limits: [{ atMost: 1, of: HTTP_EDGES }] },
  {
    row: 'http-keep-alive',
    path: 'ours-http-default',
    figure: CPU_PER_REQUEST,
    limits: [{ atMost: 1.3, of: ['ours-http'] }],
  },
  { row: 'http-connect', path: 'ours-http', figure: CPU_PER_REQUEST, limits: [{ atMost: 0.75, of: ['rathole'] }] },
  {
    row: 'https-keep-alive',
    path: 'ours-https',
    figure: CPU_PER_REQUEST,
    limits: [{ atMost: 1, of: ['rustunnel-https'] }],
  },
  {
    row: 'https-connect',
    path: 'ours-https',
    figure: CPU_PER_REQUEST,
    limits: [
      { atMost: 1, of: ['rustunnel-https'] },
      { atMost: 1.2, of: ['bare-tls'] },
    ],
  },
  { row: 'tcp-idle', path: 'ours', figure: 'kbPerConnection', limits: [{ atMost: 1, of: [...TUNNELS, 'nginx'] }] },
  { row: 'tcp-idle', path: 'ours', figure: 'edgeRestMb', limits: [{ atMost: 80 }] },
  { row: 'tcp-idle', path: 'ours', figure: 'clientRestMb', limits: [{ atMost: 50 }] },
  { row: 'tcp-beside-bulk', path: 'ours', figure: 'p50Ms', limits: [{ atMost: 0.3 }] },
  { row: 'tcp-beside-bulk', path: 'ours', figure: 'p99Ms', limits: [{ atMost: 3 }] },
  { row: 'tcp-beside-bulk', path: 'ours', figure: 'shareOfAlone', limits: [{ atLeast: 0.9 }] },
  ...NEWER_NODES,
];

/**
 * @param {object} target of TARGETS
 * @param {{ name: string, rounds: Record<string, object>[] }[]} rows as they were measured
 * @param {{ suffix: string, major: number }} runtime
 * @returns {{ reached: boolean, limits: object[] } | null} each limit with its `bound`, the path of comparison (`than`) and the `measured` value;
 *   null if there is nothing to judge
 */
export function judge({ row, path, figure, limits }, rows, runtime) {
  const rounds = rows.find(({ name }) => name === row)?.rounds ?? [];
  const judged = limits.map((limit) => judgeLimit(limit, { rounds, path, figure, runtime })).filter(Boolean);
  return judged.length === 0 ? null : { reached: judged.some(({ reached }) => reached), limits: judged };
}

function judgeLimit(limit, { rounds, path, figure, runtime }) {
  const own = path + runtime.suffix;
  const values = (name) => rounds.map((round) => round[name]?.[figure] ?? Number.NaN);
  const bound = (runtime.major >= 24 ? limit.fromNode24 : undefined) ?? limit.atMost ?? limit.atLeast;
  const isFactor = limit.of !== undefined || limit.ofFirstNode === true;
  if (limit.ofFirstNode && runtime.suffix === '') return null;
  // Our paths as references are taken on the same Node.js version.
  const others = limit.ofFirstNode ? [path] : (limit.of ?? []).map((name) => onRuntime(name, runtime));
  const than = isFactor ? bestOf(others, values) : null;
  if (isFactor && than === null) return null;
  const beside = isFactor ? values(than) : null;
  const measured = spread(values(own).map((value, at) => (beside ? value / beside[at] : value)));
  if (measured === null) return null;
  const isReached = limit.atLeast === undefined ? measured.median <= bound : measured.median >= bound;
  return { bound, atLeast: limit.atLeast !== undefined, than, measured, reached: isReached };
}

const onRuntime = (name, { suffix }) => (/^(?:ours|bare)/.test(name) ? name + suffix : name);

function bestOf(names, values) {
  const known = names
    .map((name) => ({ name, median: spread(values(name))?.median }))
    .filter(({ median }) => median !== undefined);
  return known.sort((a, b) => a.median - b.median)[0]?.name ?? null;
}
