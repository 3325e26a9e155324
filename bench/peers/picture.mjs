// Draws docs/benchmarks-peers.svg from the record only: the cost of our paths and of the peers, with a panel per row.
import { drawBars } from '../lib/picture.mjs';
import { FIGURES } from '../scenarios/figures.mjs';
import { ROWS } from './rows.mjs';
import { summarizeRow } from './summary.mjs';

/** Rows in the picture: the most important of those on the page. */
const PANELS = [
  { row: 'tcp-bulk-down', title: 'Bulk download' },
  { row: 'tcp-keep-alive', title: 'TCP: small requests, keep-alive' },
  { row: 'tcp-connect', title: 'TCP: a new connection per request' },
  { row: 'tcp-idle', title: 'Memory of an idle connection' },
  { row: 'http-keep-alive', title: 'HTTP: small GETs, keep-alive' },
  { row: 'http-connect', title: 'HTTP: a new connection per GET' },
  { row: 'https-keep-alive', title: 'HTTPS: small GETs, keep-alive' },
  { row: 'https-connect', title: 'HTTPS: a new connection per GET' },
  { row: 'udp-64', title: 'UDP: 64 bytes, 64 visitors' },
  { row: 'udp-1200', title: 'UDP: 1,200 bytes, 64 visitors' },
  { row: 'start', title: 'Start of a client' },
];
const UNITS = {
  cpuPerGb: 'CPU seconds per GB, less is better',
  cpuPerRequestUs: 'CPU µs per request, less is better',
  cpuPerDatagramUs: 'CPU µs per datagram, less is better',
  clientStartMs: 'ms to the first answer, less is better',
  kbPerConnection: 'KB, both processes, less is better',
};
/** Paths without a tunnel, shown as the lower bound of cost on the machine. */
const FLOORS = ['nginx', 'nginx-tls', 'nginx-http', 'nginx-udp', 'bare-tls'];

/** @returns {string} SVG */
export function renderPicture(record) {
  const { date, machine, runtimes } = record;
  return drawBars({
    title: 'Cost of a tunnel: server and client together, Hatchway and other tunnels',
    subtitle: 'Medians of one run on one machine. Blue: Hatchway. Pale: two nginx hops or plain TLS, without a tunnel.',
    foot: `${date.slice(0, 10)}, ${machine.cores} cores, Node.js ${runtimes[0].version}: npm run bench:peers`,
    panels: PANELS.map((panel) => panelOf(panel, record)).filter(({ bars }) => bars.length > 0),
  });
}

function panelOf({ row: name, title }, record) {
  const row = ROWS.find((one) => one.name === name);
  const rounds = record.rows.find((one) => one.name === name)?.rounds ?? [];
  const bars = summarizeRow(row, rounds)
    // Paths on additional Node.js versions are only in the table.
    .filter(({ path, figures }) => figures[row.rank] !== null && !path.includes('@'))
    .map(({ path, figures }) => ({
      label: path,
      value: figures[row.rank].median,
      text: figures[row.rank].median.toFixed(FIGURES[row.rank].digits),
      kind: kindOf(path),
    }));
  return { title, unit: UNITS[row.rank], bars };
}

function kindOf(path) {
  if (path.startsWith('ours')) return 'ours';
  return FLOORS.includes(path) ? 'floor' : 'peer';
}
