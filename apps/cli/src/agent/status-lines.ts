// Terminal output for the status of running clients: a block for each client, with its tunnels in columns.
import { oneLine } from '../io/problem-report.ts';
import { bytesText, type Colours, columns, counted } from '../output/text.ts';
import type { ClientStatus, TunnelStatus } from './answers.ts';

export const NO_CLIENT = 'no client is running';

/** Formats the status of clients. `now` is in epoch milliseconds. */
export const clientLines = (clients: readonly ClientStatus[], now: number, colours: Colours): string[] => {
  if (clients.length === 0) return [NO_CLIENT];
  return clients.flatMap((client, index) => [...(index === 0 ? [] : ['']), ...blockOf(client, now, colours)]);
};

const blockOf = (client: ClientStatus, now: number, colours: Colours): string[] => {
  const paint = client.state === 'connected' ? colours.green : colours.yellow;
  const head = [
    colours.bold(`client ${client.pid}`),
    `${oneLine(client.server)} ${paint(client.state)}`,
    ...(client.region_id === null ? [] : [oneLine(client.region_id)]),
    ...(client.latency_ms === null ? [] : [`${client.latency_ms} ms`]),
    ...(client.carriers === 0 ? [] : [counted(client.carriers, 'connection', 'connections')]),
    `up ${ageText(now - Date.parse(client.since))}`,
  ];
  const facts = [
    ...(client.config === null ? [] : [`config ${client.config}`]),
    ...(client.proxy === null ? [] : [`proxy ${client.proxy}`]),
    ...(client.log_file === null ? [] : [`log ${client.log_file}`]),
  ];
  const rows = columns(client.tunnels.map(cellsOf));
  const tunnels = client.tunnels.flatMap((tunnel, at) => [
    shade(rows[at] ?? '', tunnel, colours),
    ...(tunnel.last_error === null ? [] : [colours.red(`    ${oneLine(tunnel.last_error)}`)]),
  ]);
  return [
    head.join('  '),
    ...(facts.length === 0 ? [] : [colours.dim(`  ${facts.map(oneLine).join('  ')}`)]),
    ...(tunnels.length === 0 ? ['  no tunnels'] : tunnels),
  ];
};

const cellsOf = (tunnel: TunnelStatus): string[] => [
  oneLine(tunnel.name),
  stateText(tunnel),
  routeText(tunnel),
  SOURCES[tunnel.source],
  `${visitsText(tunnel)}, ${bytesText(tunnel.bytes_proxied)}`,
];

/** Labels for the origin of a tunnel. Tunnels from config.yml have no label. */
const SOURCES: Readonly<Record<TunnelStatus['source'], string>> = {
  file: '',
  flags: 'from the command line',
  mcp: 'from MCP',
  runtime: 'added while running',
};

const visitsText = ({ protocol, request_count: count }: TunnelStatus): string =>
  /^https?$/.test(protocol) ? counted(count, 'request', 'requests') : counted(count, 'connection', 'connections');

const stateText = ({ state, healthy }: TunnelStatus): string => {
  if (state !== 'open' || healthy === null) return state;
  return healthy ? 'open, healthy' : 'open, unhealthy';
};

const routeText = ({ public_url: url, protocol, local, group }: TunnelStatus): string => {
  const route = [url ?? protocol, ...(local === null ? [] : [local])].map(oneLine).join(' -> ');
  return group === null ? route : `${route} (group ${oneLine(group)})`;
};

const shade = (line: string, { state, healthy }: TunnelStatus, colours: Colours): string => {
  if (state === 'refused' || healthy === false) return colours.red(line);
  return state === 'open' ? line : colours.yellow(line);
};

/** Formats a duration, such as `3 d 4 h`, `12 min` or `5 s`. Long durations leave out small units. */
const ageText = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  const hours = Math.floor(seconds / 3600);
  return hours < 24 ? `${hours} h ${Math.floor(seconds / 60) % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
};
