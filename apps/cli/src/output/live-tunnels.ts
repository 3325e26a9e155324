// Live tunnels and their captured requests as lines for people: fitted to the terminal, and uncut in a pipe.
import type { CapturedRequest } from '@tunnel/contract';
import type { LiveTunnel } from '../api/account-tunnels.ts';
import { oneLine } from '../io/problem-report.ts';
import { durationText, paintStatus } from './lines.ts';
import { bytesText, type Colours, columns, counted, cutVisible, momentText, padded, visibleLength } from './text.ts';

export interface ListLook {
  /** Current time in milliseconds since the epoch. A request of today is shown with the time only, without the date. */
  readonly now: number;
  /** Width of the terminal. Null without a terminal, where no line is cut. */
  readonly width: number | null;
  readonly colours: Colours;
}

const NO_TUNNELS = ['No open tunnels.', '  Open a tunnel: tunnel http 3000'];
const HEADINGS = ['NAME', 'URL', 'COMPUTER', 'USED', 'SINCE', 'ID'];

/** Lists tunnels in a table if the table fits the terminal. Otherwise a tunnel has two lines, so that no address is cut. */
export const liveTunnelLines = (tunnels: readonly LiveTunnel[], { width, colours }: ListLook): string[] => {
  if (tunnels.length === 0) return NO_TUNNELS;
  const rows = tunnels.map(cellsOf);
  const [heading = '', ...table] = columns([HEADINGS, ...rows]).map((line) => line.slice(2));
  const widest = Math.max(...table.map(visibleLength));
  if (width === null || widest < width) return [colours.dim(heading), ...table];
  return rows.flatMap(([name = '', url = '', ...rest]) => [
    `${colours.bold(name)}  ${url}`,
    cutVisible(`  ${rest.filter((cell) => cell !== '').join(', ')}`, width - 1),
  ]);
};

const cellsOf = (tunnel: LiveTunnel): string[] => [
  oneLine(tunnel.name ?? tunnel.label),
  oneLine(tunnel.public_url ?? `${tunnel.protocol} ${tunnel.label}`),
  oneLine(tunnel.client_name ?? ''),
  usedText(tunnel),
  momentText(tunnel.connected_since),
  oneLine(tunnel.tunnel_id),
];

const VISITS: Readonly<Record<LiveTunnel['protocol'], readonly [string, string]>> = {
  http: ['request', 'requests'],
  tcp: ['connection', 'connections'],
  udp: ['flow', 'flows'],
  p2p: ['peer', 'peers'],
};

const usedText = ({ protocol, request_count: count, bytes_proxied: bytes }: LiveTunnel): string =>
  `${counted(count, ...VISITS[protocol])}, ${bytesText(bytes)}`;

const METHOD_WIDTH = 7;
const DURATION_WIDTH = 8;
const PATH_LEAST = 10;
/**
 * Columns of a request id with room for a mark, so that the columns before the id are aligned. Ids are shorter, except on long
 * connections.
 */
const ID_WIDTH = 24;

/** Maximum columns of a path in a pipe. A longer path is not cut, and moves the following columns. */
const PATH_MOST = 60;

/** Lines of a tunnel's captured requests, oldest first: time, method, path, status, total duration, and the id for `tunnel replay`. */
export class CapturedLines {
  /** Column widths in a pipe: the widest method and path so far. */
  #methodWidth = 0;
  #pathWidth = 0;
  #isFirst = true;

  lines(requests: readonly CapturedRequest[], look: ListLook): string[] {
    for (const { method, path } of requests) {
      this.#methodWidth = Math.min(METHOD_WIDTH, Math.max(this.#methodWidth, visibleLength(oneLine(method))));
      this.#pathWidth = Math.min(PATH_MOST, Math.max(this.#pathWidth, visibleLength(oneLine(path))));
    }
    const widths = { method: this.#methodWidth, path: this.#pathWidth };
    const heading = this.#isFirst && look.width !== null && requests.length > 0 ? [headingLine(look, look.width)] : [];
    if (requests.length > 0) this.#isFirst = false;
    return [...heading, ...requests.map((request) => capturedLine(request, look, widths))];
  }
}

/**
 * Formats the headings of captured requests. The duration is named TOTAL, because it is the whole time at the edge. `tunnel logs` shows
 * only the time of the local service.
 */
const headingLine = ({ colours }: ListLook, width: number): string => {
  const lead = `${'TIME'.padEnd(TIME_LENGTH)} ${'METHOD'.padEnd(METHOD_WIDTH)} `;
  const room = Math.max(PATH_LEAST, width - 1 - lead.length - DURATION_WIDTH - ID_WIDTH - 7);
  return colours.dim(`${lead}${'PATH'.padEnd(room)}     ${'TOTAL'.padStart(DURATION_WIDTH)}  ID`);
};

interface PipeWidths {
  readonly method: number;
  readonly path: number;
}

const capturedLine = (request: CapturedRequest, { width, colours, now }: ListLook, pipe: PipeWidths): string => {
  const moment = momentText(request.at);
  const path = oneLine(request.path);
  const method = oneLine(request.method);
  const rule = request.policy?.answered_by?.index;
  const marks = [
    // The policy rule that answered the request before it could reach the service.
    ...(rule === undefined ? [] : [rule === 0 ? "operator's rule" : `rule ${rule}`]),
    ...(request.aborted ? ['aborted'] : []),
    ...(request.edited === true ? ['edited'] : []),
    ...(request.replay_of === undefined ? [] : ['replay']),
  ];
  const status = paintStatus(request, colours);
  const duration = request.duration_ms === null ? 'open' : durationText(request.duration_ms);
  const id = [oneLine(request.id), ...marks].join(' ');
  if (width === null) {
    const cells = [moment, padded(method, pipe.method), padded(path, pipe.path), status];
    return [...cells, duration.padStart(DURATION_WIDTH), id].join('  ');
  }
  const today = momentText(new Date(now).toISOString()).slice(0, DAY_LENGTH);
  const at = moment.startsWith(today) ? moment.slice(DAY_LENGTH) : moment;
  const lead = `${at} ${method.slice(0, METHOD_WIDTH).padEnd(METHOD_WIDTH)} `;
  const room = Math.max(PATH_LEAST, width - 1 - lead.length - DURATION_WIDTH - Math.max(ID_WIDTH, id.length) - 7);
  return `${colours.dim(lead)}${padded(cutVisible(path, room), room)} ${status} ${duration.padStart(DURATION_WIDTH)}  ${id}`;
};

/** Length of a date with the space behind it, such as `2030-01-31 `. */
const DAY_LENGTH = 11;
/** Length of a time, such as `07:08:09`. */
const TIME_LENGTH = 8;
