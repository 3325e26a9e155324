// Live tunnels and their captured requests in lines for people: as wide as the terminal, and whole in a pipe.
import type { CapturedRequest } from '@tunnel/contract';
import type { LiveTunnel } from '../api/account-tunnels.ts';
import { oneLine } from '../io/problem-report.ts';
import { durationText, paintStatus } from './lines.ts';
import { bytesText, type Colours, columns, counted, cutVisible, momentText, padded, visibleLength } from './text.ts';

export interface ListLook {
  /** Milliseconds since the epoch: of today the time is enough. */
  readonly now: number;
  /** null: no terminal, nothing is cut. */
  readonly width: number | null;
  readonly colours: Colours;
}

const NO_TUNNELS = ['No open tunnels.', '  Open a tunnel: tunnel http 3000'];
const HEADINGS = ['NAME', 'URL', 'COMPUTER', 'USED', 'SINCE', 'ID'];

/** A table where it fits; else two lines for each, so that no address is cut. */
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
/** Ids are shorter, but for long connections; with room for a mark, so that what stands before them is aligned. */
const ID_WIDTH = 24;

/** Columns of a path in a pipe, where a longer one is not cut: what stands behind it moves. */
const PATH_MOST = 60;

/** The captured requests of a tunnel, oldest first: when, what, how it went, how long it took in all, and the id that `tunnel replay` takes. */
export class CapturedLines {
  /** In a pipe: as wide as the widest so far. */
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

/** The time is named: it is the whole time at the edge, and `tunnel logs` shows the part that the service took. */
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
    // Which rule answered it, so that the service never saw it.
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

/** `2030-01-31 `. */
const DAY_LENGTH = 11;
/** `07:08:09`. */
const TIME_LENGTH = 8;
