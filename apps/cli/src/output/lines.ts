// Output without a terminal (a log, a pipe): a plain line for each event, and errors on stderr. Also has the texts of these lines.
import {
  type Client,
  type DatagramWay,
  edgeAnswerText,
  protocolTraits,
  type RequestEvent,
  type StatusEvent,
  type Tunnel,
} from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import type { ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { oneLine, problemLines } from '../io/problem-report.ts';
import type { Output, RemovedTunnel, ShownRequest } from './output.ts';
import { connectionText, pathText, peerEventText } from './peers.ts';
import { bytesText, type Colours, counted, cutVisible, padded, visibleLength } from './text.ts';

/**
 * Streams of a line output. With `clock`, the lines of events begin with the time. Without `clock`, the time is shown elsewhere. With
 * `platformUrl`, errors have a link to the documentation.
 */
export interface LineIo extends Pick<Io, 'stdout' | 'stderr'>, Partial<Pick<Io, 'clock'>> {
  readonly platformUrl?: Io['platformUrl'] | undefined;
}

/** Events with the addresses of a run. Their lines do not begin with the time, because people copy addresses from the lines. */
const UNTIMED: ReadonlySet<StatusEvent['type']> = new Set(['connected', 'tunnel-opened', 'peer-ready']);

export class LineOutput implements Output {
  readonly #io: LineIo;
  readonly #printRequest: (line: string) => unknown;
  readonly #names = new Set<string>();
  /** Last error message of each peer connection, so that a rejection that ends the start is not printed twice. */
  readonly #refusals = new Map<string, string>();

  /** Creates an output. `printRequest` prints the lines of requests, which are more frequent than all other lines. */
  constructor(io: LineIo, printRequest = (line: string): unknown => io.stdout.write(line)) {
    this.#io = io;
    this.#printRequest = printRequest;
  }

  onClient(_client: Pick<Client, 'session'>): void {}

  onStatus(event: StatusEvent): void {
    if (event.type === 'tunnel-error' || event.type === 'local-error') this.#complain(event.tunnel.name, event.fault);
    else if (event.type === 'peer-error') this.#complainOnce(event.connection.name, event.fault);
    else {
      if (event.type === 'path') this.#refusals.delete(event.name);
      const line = eventLine(event);
      if (line !== undefined) this.#io.stdout.write(`${UNTIMED.has(event.type) ? '' : this.#time()}${line}\n`);
    }
  }

  onRequest(event: ShownRequest): void {
    this.#names.add(event.tunnel.name);
    this.#printRequest(`${requestLine(event, { named: this.#names.size > 1 })}\n`);
  }

  onInspector(url: string | null): void {
    this.#io.stdout.write(`${inspectorText(url)}\n`);
  }

  onNotice(text: string, channel: 'stdout' | 'stderr'): void {
    this.#io[channel].write(`${text}\n`);
  }

  onReloading(): void {}

  onReloaded(outcome: ReloadOutcome): void {
    const [first = '', ...more] = reloadLines(outcome);
    this.#io.stdout.write(`${[`${this.#time()}reloaded: ${first}`, ...more].join('\n  ')}\n`);
  }

  onReloadRefused(fault: Fault): void {
    this.onFailure(fault);
  }

  onRemoved({ name }: RemovedTunnel): void {
    this.#io.stdout.write(`${this.#time()}${oneLine(name)}: removed\n`);
  }

  onFailure(fault: Fault): void {
    this.#io.stderr.write(`${this.#problemLines(fault).join('\n')}\n`);
  }

  onDrain(open: number, seconds: number): void {
    if (open > 0) this.#io.stdout.write(`${drainText(open, seconds)}\n`);
  }

  onEnd(_code: ExitCode, tunnels: readonly Tunnel[]): void {
    for (const tunnel of tunnels) this.#io.stdout.write(`${tunnel.name}: ${countsText(tunnel)}\n`);
  }

  /** Returns the time with a space behind it, in the same form as in the lines of requests. */
  #time(): string {
    const { clock } = this.#io;
    return clock === undefined ? '' : `${clockText(clock.now())} `;
  }

  #problemLines(fault: Fault): string[] {
    return problemLines(fault, { platformUrl: this.#io.platformUrl?.() });
  }

  #complainOnce(name: string, fault: Fault): void {
    if (this.#refusals.get(name) !== fault.message) this.#complain(name, fault);
    this.#refusals.set(name, fault.message);
  }

  #complain(name: string, fault: Fault): void {
    const [what = '', ...hints] = this.#problemLines(fault);
    const named = what.replace(/^tunnel: /, `tunnel: ${oneLine(name)}: `);
    this.#io.stderr.write(`${[named, ...hints].join('\n')}\n`);
  }
}

/** Describes the connections that may still finish when a run stops. Empty if no connection is open. */
export const drainText = (open: number, seconds: number): string => {
  if (open === 0) return '';
  const who = `${counted(open, 'connection', 'connections')} ${open === 1 ? 'has' : 'have'}`;
  return `Stopping: ${who} ${seconds} s to finish. Press Ctrl-C again to stop now.`;
};

export const uptimeText = (ms: number): string => {
  const seconds = Math.floor(ms / 1000);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(part).padStart(2, '0')).join(':');
};

/** Returns the local target of a tunnel, with its scheme. */
export const localText = ({ protocol, local }: Tunnel): string =>
  `${protocolTraits(protocol).localScheme}${oneLine(local)}`;

export const routeText = (tunnel: Tunnel): string => `${oneLine(tunnel.publicUrl)} -> ${localText(tunnel)}`;

export const countsText = ({ counts, dropped, protocol }: Tunnel): string => {
  const lost = Object.values(dropped).reduce((sum, count) => sum + count, 0);
  const drops = lost === 0 ? '' : `, ${counted(lost, 'datagram', 'datagrams')} dropped`;
  return `${trafficText(counts, protocol)}${drops}`;
};

/**
 * Describes the traffic of a tunnel. An HTTP tunnel shows requests instead of connections, because the edge decides when to open and keep
 * the connections of such a tunnel.
 */
export const trafficText = (
  { requests, open, connections, edgeAnswered, bytesIn, bytesOut }: Tunnel['counts'],
  protocol: Tunnel['protocol'],
): string => {
  if (requests + connections + edgeAnswered === 0) return NO_VISITS[protocol];
  const [one, many] = protocol === 'udp' ? ['flow', 'flows'] : ['connection', 'connections'];
  const visits =
    requests + edgeAnswered > 0
      ? counted(requests, 'request', 'requests')
      : `${counted(connections, one, many)}, ${open} open`;
  const answered = edgeAnswered === 0 ? '' : `, ${edgeAnswered} more answered by the edge`;
  return `${visits}${answered}, ${bytesText(bytesIn)} in, ${bytesText(bytesOut)} out`;
};

const NO_VISITS: Readonly<Record<Tunnel['protocol'], string>> = {
  http: 'No requests yet',
  https: 'No requests yet',
  tcp: 'No connections yet',
  tls: 'No connections yet',
  udp: 'No datagrams yet',
  p2p: 'No connections yet',
};

const CARRIER_REASONS: Readonly<Record<string, string>> = {
  probing: 'trying UDP',
  'udp-blocked': 'UDP does not reach the edge and back',
  'went-silent': 'the UDP path went silent; the client retries later',
  off: 'this edge offers no UDP path',
};

/** Describes the transport of datagrams between client and edge. Printed after the word `datagrams`. */
export const wayText = ({ path, reason }: DatagramWay): string =>
  path === 'udp' ? 'over UDP' : `over TCP (${CARRIER_REASONS[reason] ?? oneLine(reason)})`;

/** Maximum tunnel names printed after a reload for each kind of change. */
const RELOADED_NAMES_MAX = 20;

/**
 * Describes a reload: the number of changed tunnels, below the number their names, and the config keys that need a restart of the client.
 */
export const reloadLines = ({
  added,
  removed,
  changed,
  unchanged,
  restart_required: keys,
}: ReloadOutcome): string[] => [
  `added ${added.length}, removed ${removed.length}, changed ${changed.length}, unchanged ${unchanged}`,
  ...namesLine('added', added),
  ...namesLine('removed', removed),
  ...namesLine('changed', changed),
  ...(keys.length === 0 ? [] : [`restart the client to apply: ${keys.join(', ')}`]),
];

const namesLine = (what: string, names: readonly string[]): string[] => {
  if (names.length === 0) return [];
  const more = names.length > RELOADED_NAMES_MAX ? ` and ${names.length - RELOADED_NAMES_MAX} more` : '';
  return [`${what}: ${names.slice(0, RELOADED_NAMES_MAX).map(oneLine).join(', ')}${more}`];
};

type HealthEvent = Extract<StatusEvent, { type: 'health' }>;

/** Describes a change of health, for an event line. In a permanent block, `healthWord` is enough. */
const healthText = ({ healthy, reason, consecutiveFailures }: HealthEvent): string =>
  healthy ? 'healthy' : `unhealthy: ${oneLine(reason)} (${consecutiveFailures} in a row)`;

const HEALTH_WORDS = { none: '', unknown: 'not checked yet', healthy: 'healthy', unhealthy: 'unhealthy' } as const;

/** Returns the health of a tunnel as a word. Empty without a health check. */
export const healthWord = ({ health }: Tunnel): string => HEALTH_WORDS[health];

/** Returns the group of a tunnel in parentheses. Empty for a tunnel without a group. */
export const groupText = ({ group }: Tunnel): string => (group === null ? '' : ` (group ${oneLine(group)})`);

export const inspectorText = (url: string | null): string =>
  url === null ? 'inspector: off, because ports 4300 to 4399 on 127.0.0.1 are all in use' : `inspector: ${url}`;

/** Returns the line for an event, or undefined for an event without a line. */
export const eventLine = (event: StatusEvent): string | undefined => {
  switch (event.type) {
    case 'connected':
      return `connected${event.resumed ? ', session resumed' : ''}`;
    case 'reconnecting': {
      const pause = (event.delayMs / 1000).toFixed(1);
      return `${oneLine(event.reason)}; ${event.planned ? 'connecting' : 'trying'} again in ${pause} s`;
    }
    case 'reconnected':
      return `reconnected${event.resumed ? ', session resumed' : ''}`;
    case 'tunnel-opened':
      return withWarnings(event.tunnel, `${routeText(event.tunnel)}${groupText(event.tunnel)}`);
    case 'tunnel-moved':
      return withWarnings(event.tunnel, `now at ${routeText(event.tunnel)} (was ${oneLine(event.previousUrl)})`);
    case 'health':
      return `${event.tunnel.name}: ${healthText(event)}`;
    case 'datagrams':
      return `${event.tunnel.name}: datagrams ${wayText(event)}`;
    case 'peer-ready':
      return `${event.connection.name}: ${connectionText(event.connection)}`;
    case 'peer':
      return `${event.tunnel.name}: ${peerEventText(event)}`;
    case 'path':
      return `${event.name}: ${pathText(event)}`;
    default:
      return undefined;
  }
};

/** Adds the policy of a tunnel, and the warnings about an open tunnel, below the tunnel's line. */
const withWarnings = ({ name, guard, warnings }: Tunnel, text: string): string =>
  [
    `${name}: ${text}`,
    ...(guard === null ? [] : [`policy: ${oneLine(guard)}`]),
    ...warnings.map((warning) => `warning: ${oneLine(warning)}`),
  ].join('\n  ');

export type FinishedRequest = Extract<RequestEvent, { type: 'request-finished' }>;
type EdgeAnsweredRequest = Extract<RequestEvent, { type: 'edge-answered' }>;

const METHOD_WIDTH = 7;
const DURATION_WIDTH = 8;
const PATH_LEAST = 10;
/** Columns of a path, so that statuses are aligned. A longer path moves the status to the right. */
const PATH_COLUMN = 32;

export interface LineShape {
  /** Width of the terminal. With Infinity, no part of the line is cut. If undefined, no part is cut or aligned. */
  readonly width?: number;
  /** Whether the tunnel's name is needed to tell requests apart. */
  readonly named: boolean;
  /** Columns of the longest tunnel name, so that the text behind the names is aligned. */
  readonly nameWidth?: number;
  /** True if the time of the request is already printed in front of the line. */
  readonly untimed?: boolean;
  readonly colours?: Colours;
}

/** Maximum columns of a tunnel name. */
const NAME_MOST = 20;

/** Returns the column width for a list of tunnel names, for use as `nameWidth`. */
export const nameWidthOf = (names: Iterable<string>): number => {
  let width = 0;
  for (const name of names) width = Math.max(width, visibleLength(oneLine(name)));
  return Math.min(NAME_MOST, width);
};

/** Returns a tunnel name, cut and padded to its column. */
export const paddedName = (name: string, width: number): string => padded(cutVisible(oneLine(name), NAME_MOST), width);

/** Content of a line about a request. */
export interface LineFacts {
  readonly name: string;
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly status: number | null;
  readonly aborted: boolean;
  /** Text behind the status: the duration, or the edge's reason for answering the request. */
  readonly outcome: string;
  readonly tail: string;
}

/**
 * Formats the line of a request: time, method, path, status and duration. For a request answered by the edge, the edge's reason replaces
 * the duration.
 */
export const requestLine = (event: ShownRequest, shape: LineShape): string => {
  if (event.type !== 'edge-answered-more') return factsLine(factsOf(event, shape.width !== undefined), shape);
  return `${shape.named ? `${oneLine(event.tunnel.name)}: ` : ''}${moreAnsweredText(event.count)}`;
};

/**
 * Formats a request line. The line does not fill the terminal, because a window that is made narrower would break every line in two. Only
 * a long path makes a line longer.
 */
export const factsLine = (facts: LineFacts, shape: LineShape): string => {
  const { width, named, nameWidth = 0, untimed, colours } = shape;
  const name = named ? paddedName(facts.name, nameWidth) : '';
  const { outcome, tail } = facts;
  const path = oneLine(facts.path);
  const method = oneLine(facts.method);
  const status = paintStatus(facts, colours);
  const time = untimed === true ? '' : clockText(facts.at);
  const lead = time === '' || name === '' ? time + name : `${time} ${name}`;
  if (width === undefined) return `${lead} ${method} ${path} ${status} ${outcome.trimStart()}${tail}`;
  const others = METHOD_WIDTH + visibleLength(outcome) + tail.length + 7;
  const isTooNarrow = width < visibleLength(lead) + others + PATH_LEAST;
  // A narrow window has no room for the time in a request's line.
  const first = isTooNarrow ? name : lead;
  const room = Math.max(PATH_LEAST, width - visibleLength(first) - others);
  const dim = colours?.dim ?? String;
  const shown = padded(cutVisible(path, room), Math.min(room, PATH_COLUMN));
  const start = first === '' ? '' : `${dim(first)} `;
  return `${start}${method.slice(0, METHOD_WIDTH).padEnd(METHOD_WIDTH)} ${shown} ${status} ${outcome}${tail}`;
};

const factsOf = (event: FinishedRequest | EdgeAnsweredRequest, isAligned: boolean): LineFacts => {
  const { at, method, path, status } = event;
  const isAnswered = event.type === 'edge-answered';
  const aborted = !isAnswered && event.aborted;
  return {
    name: event.tunnel.name,
    at,
    method,
    path,
    status,
    aborted,
    outcome: isAnswered ? oneLine(edgeAnswerText(event)) : durationColumn(event.durationMs, isAligned),
    tail: `${aborted ? ' aborted' : ''}${event.replayOf === null ? '' : ' replay'}`,
  };
};

const durationColumn = (ms: number, isAligned: boolean): string =>
  isAligned ? durationText(ms).padStart(DURATION_WIDTH) : durationText(ms);

/** Text in place of further lines of requests answered by the edge. */
const moreAnsweredText = (count: number): string =>
  `… and ${count} more ${count === 1 ? 'request' : 'requests'} answered by the edge`;

/** Text in place of request lines that were left out because there were too many to read. */
export const moreRequestsText = (count: number): string => `… and ${count} more requests`;

/** The second formatted last, and its text. A busy client prints thousands of lines with the same second. */
const lastClock = { second: -1, text: '' };

const clockText = (at: number): string => {
  const second = Math.floor(at / 1000);
  if (second !== lastClock.second) {
    const time = new Date(at);
    const parts = [time.getHours(), time.getMinutes(), time.getSeconds()];
    lastClock.second = second;
    lastClock.text = parts.map((part) => String(part).padStart(2, '0')).join(':');
  }
  return lastClock.text;
};

/** Durations from 0.0 to 10.0 ms as texts. toFixed() for every request would cost as much as the rest of its line. */
const TENTHS: readonly string[] = Array.from({ length: 101 }, (_, tenths) => `${(tenths / 10).toFixed(1)} ms`);

export const durationText = (ms: number): string => {
  if (ms < 9.95) return TENTHS[Math.round(ms * 10)] ?? `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  return ms < 599_950 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
};

/** Formats a status as three characters, in the color of its status class. */
export const paintStatus = (
  { status, aborted = false }: { readonly status: number | null; readonly aborted?: boolean },
  colours: Colours | undefined,
): string => {
  const text = status === null ? '---' : String(status);
  if (colours === undefined) return text;
  if (status === null || aborted || status >= 500) return colours.red(text);
  if (status >= 400) return colours.yellow(text);
  return status >= 300 || status < 200 ? colours.cyan(text) : colours.green(text);
};
