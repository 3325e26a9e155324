// Targets for each row, and whether a run reached them. A target has one or more limits, and is reached if any of them is met:
//   { atMost, fromNode24?, of }  factor of the best of these paths, within each round
//   { atMost } or { atLeast }    absolute value of the figure
//   { atMost, ofFirstNode }      factor of the same path on the first Node.js of the run
//   { atMost, ofFigure }         factor of another figure of the same path, within each round
// Absolute limits were set on another machine, so some targets also have the same limit as a factor.
// `why` is the reason that the page gives for a missed target.
import { spread } from '../lib/statistics.mjs';

const TUNNELS = ['rathole', 'bore', 'rustunnel', 'frp', 'frp-plain', 'chisel', 'gost', 'ssh'];
const TLS_TUNNELS = ['rathole-tls', 'rustunnel', 'frp', 'gost-tls'];
const HTTP_EDGES = ['nginx-http', 'frp-http', 'frp-http-plain', 'piko-http'];
const CPU_PER_REQUEST = 'cpuPerRequestUs';
const CPU_PER_DATAGRAM = 'cpuPerDatagramUs';
/** Milliseconds of `node -e 0` on the machine for which absolute targets were set. */
const TARGET_MACHINE_NODE_MS = 33;

/** The second limit is the first one on the machine for which it was set. */
const START_LIMITS = [{ atMost: 150 }, { atMost: 4.55, ofFigure: 'bareNodeMs' }];
const START_WHY =
  'Of 135 ms on a quiet machine, the start of Node.js takes 35, reading compiled code 15, running its modules 35, and connecting the rest, mostly code that runs once. Other programs that are running slow down a start more than `node -e 0`.';

const NEWER_NODES = [
  { row: 'tcp-bulk-down', path: 'ours', figure: 'cpuPerGb' },
  { row: 'tcp-bulk-up', path: 'ours', figure: 'cpuPerGb' },
  { row: 'tcp-keep-alive', path: 'ours', figure: CPU_PER_REQUEST },
  { row: 'tcp-connect', path: 'ours', figure: CPU_PER_REQUEST },
  { row: 'http-keep-alive', path: 'ours-http', figure: CPU_PER_REQUEST },
  { row: 'http-connect', path: 'ours-http', figure: CPU_PER_REQUEST },
].map((target) => ({ ...target, limits: [{ atMost: 1.05, ofFirstNode: true }] }));

const bulk = (row) => [
  {
    row,
    path: 'ours',
    figure: 'cpuPerGb',
    limits: [{ atMost: 1, of: [...TUNNELS, 'nginx'] }],
    why: 'Two thirds to nine tenths of the time are writes to sockets in the kernel, as with nginx. The factor was 0.92 to 1.07 in the recorded runs.',
  },
  {
    row,
    path: 'ours-tls',
    figure: 'cpuPerGb',
    limits: [{ atMost: 1, fromNode24: 0.7, of: ['nginx-tls'] }],
    why: 'As without TLS. From Node.js 24, AES-GCM takes less time, but kernel and copies take 0.77 × nginx-tls even without encryption.',
  },
];

const tcpRequests = (row, why) => [
  { row, path: 'ours', figure: CPU_PER_REQUEST, limits: [{ atMost: 1, of: TUNNELS }], why },
  { row, path: 'ours-tls', figure: CPU_PER_REQUEST, limits: [{ atMost: 1, of: TLS_TUNNELS }], why },
];

export const TARGETS = [
  ...bulk('tcp-bulk-down'),
  ...bulk('tcp-bulk-up'),
  ...tcpRequests('tcp-keep-alive'),
  ...tcpRequests(
    'tcp-connect',
    'System calls to accept, connect, write and close take two fifths of the time of the edge and half of the time of the client; Node.js and its libraries take a third to two fifths, and the compiled code of Hatchway a tenth to a sixth. The factors vary with the machine: without TLS 0.97 and 1.15 on two days, although both builds cost the same side by side.',
  ),
  {
    row: 'http-keep-alive',
    path: 'ours-http',
    figure: CPU_PER_REQUEST,
    limits: [{ atMost: 1, of: HTTP_EDGES }],
    why: 'The factor varies with the machine: 0.97 and 1.16 on two days, although both builds cost the same side by side. Programs that share the caches of the processor slow down Node.js more than nginx.',
  },
  {
    row: 'http-keep-alive',
    path: 'ours-http-default',
    figure: CPU_PER_REQUEST,
    limits: [{ atMost: 1.15, of: ['ours-http'] }],
    why: 'For its list of requests and its inspector, the client reads the head of every request and response: 8 to 10 µs, of which 2 to find the ends of heads, 2 in string functions of Node.js and 1 to make strings.',
  },
  {
    row: 'http-connect',
    path: 'ours-http',
    figure: CPU_PER_REQUEST,
    limits: [{ atMost: 0.75, of: ['rathole'] }],
    why: 'System calls to accept, write and close and the handles of Node.js take two thirds of the time of the edge, parsing and routing a fifth. rathole does not parse HTTP. The factor varies with the machine: 0.79 and 1.03 on two days, although both builds cost the same side by side.',
  },
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
    limits: [{ atMost: 1.05, of: ['bare-tls'] }],
    why: 'The edge takes as much CPU time for handshake and forwarding as bare-tls for the handshake and its answer. The rest is the time of the client, which bare-tls does not have. The factor varies with the machine: 0.98 and 1.90 on two days, although both builds cost the same side by side.',
  },
  { row: 'tcp-idle', path: 'ours', figure: 'kbPerConnection', limits: [{ atMost: 1, of: [...TUNNELS, 'nginx'] }] },
  {
    row: 'tcp-beside-bulk',
    path: 'ours',
    figure: 'p50Ms',
    limits: [{ atMost: 0.15 }],
    why: 'A round trip waits for a turn of the event loop four times, twice in the edge and twice in the client. During bulk a turn takes 50 to 130 µs. Without bulk a round trip takes 0.11 ms, so 0.15 ms would leave 10 µs per turn.',
  },
  {
    row: 'tcp-beside-bulk',
    path: 'ours',
    figure: 'p99Ms',
    limits: [{ atMost: 2 }],
    why: 'The same four waits, and waiting for a core: edge, client, origin and visitors need more than two cores.',
  },
  {
    row: 'tcp-beside-bulk',
    path: 'ours',
    figure: 'shareOfAlone',
    limits: [{ atLeast: 0.9 }],
    why: 'During round trips the window of a bulk stream is 512 KiB, and a turn of the event loop moves 80 to 140 KiB instead of 360 to 490, so a byte costs more turns.',
  },
  {
    row: 'udp-64',
    path: 'ours-udp',
    figure: CPU_PER_DATAGRAM,
    limits: [{ atMost: 12 }, { atMost: 0.69, of: ['rathole-udp'] }],
    why: 'Datagrams share packets between edge and client, but Node.js receives each datagram from a visitor and sends each one to the service separately: memory, the address as text, and objects. Node.js and its libraries take three fifths of the time of the edge, the kernel three tenths, and the compiled code of Hatchway a tenth.',
  },
  {
    row: 'udp-1200',
    path: 'ours-udp',
    figure: CPU_PER_DATAGRAM,
    limits: [{ atMost: 15 }, { atMost: 0.87, of: ['rathole-udp'] }],
    why: 'Packets of this size carry one datagram, and even a bare Node.js forwarder with the same encryption costs five times as much as nginx.',
  },
  {
    row: 'udp-one',
    path: 'ours-udp-carrier',
    figure: CPU_PER_DATAGRAM,
    limits: [{ atMost: 25 }, { atMost: 0.98, of: ['rathole-udp'] }],
    why: 'Each datagram wakes both processes, and even a bare Node.js forwarder costs twice as much as nginx.',
  },
  {
    row: 'start',
    path: 'ours',
    figure: 'clientStartMs',
    limits: START_LIMITS,
    why: START_WHY,
  },
  {
    row: 'start',
    path: 'ours',
    figure: 'clientAgainMs',
    limits: START_LIMITS,
    why: START_WHY,
  },
  {
    row: 'start',
    path: 'ours',
    figure: 'edgeRestMb',
    limits: [{ atMost: 60 }],
    why: 'An empty Node.js process takes 39 to 43 MB. Code and heap of the edge take almost as much again.',
  },
  {
    row: 'start',
    path: 'ours',
    figure: 'clientRestMb',
    limits: [{ atMost: 45 }],
    why: 'An empty Node.js process takes 39 to 43 MB, so 45 MB would leave at most 6 MB for the client. The heap of the client alone takes 10.',
  },
  {
    row: 'commands',
    path: 'ours-commands',
    figure: 'helpMs',
    limits: [{ atMost: 90 }, { atMost: 2.73, ofFigure: 'bareNodeMs' }],
  },
  {
    row: 'commands',
    path: 'ours-commands',
    figure: 'stackMb',
    limits: [{ atMost: 330 }],
    why: 'The sum counts shared memory once per process. Without repetition the stack takes about 170 MB (proportional set size). After 12 to 15 s the sum is 413 MB: npm 53, parent, platform and edge 246, PostgreSQL 115.',
  },
  {
    row: 'names',
    path: 'ours-names',
    figure: CPU_PER_REQUEST,
    limits: [{ atMost: 45 }, { atMost: 1.56, ofFigure: 'oneNameCpuPerRequestUs' }],
    why: 'Each of the 100 clients has separate carriers, so requests to different clients never share a write. Of the additional time of the edge, a quarter is spent in the kernel, a quarter on captured requests and their garbage collection, and the rest because the data of 10,000 tunnels does not fit in the caches of the processor.',
  },
  {
    row: 'clients',
    path: 'ours-clients',
    figure: 'kbPerClient',
    limits: [{ atMost: 45 }],
    why: 'About 25 KB are live objects. The rest is garbage of the opening requests, and the young generation that has grown with them.',
  },
  { row: 'clients', path: 'ours-clients', figure: 'socketsPerClient', limits: [{ atMost: 3 }] },
  {
    row: 'clients',
    path: 'ours-clients',
    figure: 'restCpuPercent',
    limits: [{ atMost: 0.5 }],
    why: 'The pings of three connections per client: about 150 reads and as many writes per second. The kernel takes a quarter to a third of the time. Half is for the pings of control connections, which pass through Node.js streams, the WebSocket library and JSON.',
  },
  ...NEWER_NODES,
];

/**
 * Returns how slow the machine of the run is: milliseconds of `node -e 0` per Node.js, and on the machine for which absolute targets were
 * set. Returns null if the run did not measure it.
 */
export function speedOf(rows, runtimes) {
  const rounds = rows.find(({ name }) => name === 'commands')?.rounds ?? [];
  const here = runtimes.map(({ suffix }) => spread(rounds.map((round) => round[`ours-commands${suffix}`]?.bareNodeMs)));
  return here.includes(null) ? null : { here: here.map(({ median }) => median), target: TARGET_MACHINE_NODE_MS };
}

/**
 * @param {object} target of TARGETS
 * @param {{ name: string, rounds: Record<string, object>[] }[]} rows as they were measured
 * @param {{ suffix: string, major: number }} runtime
 * @returns {{ reached: boolean, limits: object[] } | null} each limit with its `bound`, the path or figure of comparison (`than`) and the `measured` value;
 *   null if there is nothing to judge
 */
export function judge({ row, path, figure, limits }, rows, runtime) {
  const rounds = rows.find(({ name }) => name === row)?.rounds ?? [];
  const judged = limits.map((limit) => judgeLimit(limit, { rounds, path, figure, runtime })).filter(Boolean);
  return judged.length === 0 ? null : { reached: judged.some(({ reached }) => reached), limits: judged };
}

function judgeLimit(limit, { rounds, path, figure, runtime }) {
  const own = path + runtime.suffix;
  const values = (name, key = figure) => rounds.map((round) => round[name]?.[key] ?? Number.NaN);
  const bound = (runtime.major >= 24 ? limit.fromNode24 : undefined) ?? limit.atMost ?? limit.atLeast;
  const isFactor = limit.of !== undefined || limit.ofFirstNode === true || limit.ofFigure !== undefined;
  if (limit.ofFirstNode && runtime.suffix === '') return null;
  // Our paths as references are taken on the same Node.js version.
  const others = limit.ofFirstNode ? [path] : (limit.of ?? []).map((name) => onRuntime(name, runtime));
  const than = limit.ofFigure ?? (isFactor ? bestOf(others, values) : null);
  if (isFactor && than === null) return null;
  const beside = isFactor ? values(limit.ofFigure ? own : than, limit.ofFigure) : null;
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
