// The block shown on a terminal during a run, as labeled rows: account, region, forwarded addresses and traffic.
import { type PeerConnection, protocolTraits, type SessionFacts, type Tunnel } from '@tunnel/client';
import { oneLine } from '../io/problem-report.ts';
import {
  countsText,
  durationText,
  groupText,
  healthWord,
  localText,
  nameWidthOf,
  paddedName,
  trafficText,
  uptimeText,
  wayText,
} from './lines.ts';
import { connectionText, pathText, peerText } from './peers.ts';
import { type Colours, cutVisible, visibleLength } from './text.ts';

export type RunState = 'connecting' | 'connected' | 'reconnecting' | 'stopping' | 'stopped';

export interface BlockFacts {
  readonly server: string;
  readonly state: RunState;
  /** Time since the client was first connected. Null before the first connection. */
  readonly upMs: number | null;
  /** Description of the connections that may still finish during a stop. Empty if no connection is open. */
  readonly draining: string;
  /** The last known session. */
  readonly session: SessionFacts | null;
  readonly inspector: { readonly url: string | null } | null;
  readonly tunnels: readonly Tunnel[];
  readonly connections: readonly PeerConnection[];
}

export interface BlockLook {
  readonly width: number;
  readonly colours: Colours;
}

const LABEL_WIDTH = 12;
/** Maximum peers of one tunnel with a line, because people do not read more lines. */
const PEER_LINES_MAX = 10;

/**
 * Formats the block. Until a tunnel or peer connection is open, only the progress is shown: if the tunnel is rejected, people should read
 * only the error.
 */
export const blockLines = (facts: BlockFacts, look: BlockLook): string[] => {
  const { tunnels, connections, state } = facts;
  const rows = new Rows(look);
  const isOpen = tunnels.length + connections.length > 0;
  const { colours } = look;
  const paint = state === 'connected' && isOpen ? colours.green : colours.yellow;
  rows.add('Status', statusText(facts, isOpen), { paint });
  if (!isOpen) return rows.lines;
  addSession(rows, facts);
  addEntries(rows, facts, colours);
  if (state !== 'stopping' && state !== 'stopped') rows.addLine(colours.dim('Ctrl-C to stop'));
  return rows.lines;
};

const statusText = ({ state, server, upMs, draining }: BlockFacts, isOpen: boolean): string => {
  if (state === 'connecting') return `Connecting to ${oneLine(server)}`;
  if (state === 'reconnecting') return `Reconnecting to ${oneLine(server)}`;
  if (state === 'stopping') return draining === '' ? 'Stopping' : draining;
  if (state === 'stopped') return `Stopped after ${uptimeText(upMs ?? 0)}`;
  return isOpen ? `Online${minutesText(upMs ?? 0)}` : 'Connected, opening…';
};

/**
 * Formats the uptime without seconds. A block that changes every second disturbs users who resize the window, copy text, or read over a
 * slow line.
 */
const minutesText = (ms: number): string => {
  const minutes = Math.floor(ms / 60_000);
  const days = Math.floor(minutes / 1440);
  const hours = Math.floor(minutes / 60) % 24;
  if (minutes === 0) return '';
  if (days > 0) return ` for ${days} d ${hours} h`;
  return hours > 0 ? ` for ${hours} h ${minutes % 60} min` : ` for ${minutes} min`;
};

const addSession = (rows: Rows, { session, state, server, inspector, tunnels }: BlockFacts): void => {
  const { account = null, plan = null, regionId = '', latencyMs = null } = session ?? {};
  if (account !== null) rows.add('Account', `${oneLine(account)}${plan === null ? '' : ` (${oneLine(plan)} plan)`}`);
  // The region is shown by its id, as in lists, flags and the dashboard.
  const region = oneLine(regionId);
  const far = latencyMs === null || state !== 'connected' ? '' : `, ${durationText(latencyMs)}`;
  rows.add('Region', region === '' ? oneLine(server) : `${region} (${oneLine(server)})${far}`);
  const pages = dashboardOf(session, tunnels);
  if (pages !== null) rows.addLink('Dashboard', pages);
  // The inspector ends with the run, so its row is left out afterwards.
  if (inspector === null || state === 'stopped') return;
  if (inspector.url === null) rows.add('Inspector', 'off: ports 4300 to 4399 on 127.0.0.1 are all in use');
  else rows.addLink('Inspector', inspector.url);
};

const dashboardOf = (session: SessionFacts | null, tunnels: readonly Tunnel[]): string | null => {
  const [tunnel, ...others] = tunnels;
  const only = others.length === 0 ? tunnel : undefined;
  const url = only === undefined ? session?.dashboardUrl : tunnelPage(session, only.tunnelId);
  return url == null ? null : oneLine(url);
};

/** Returns the dashboard page of a tunnel, or null on an edge without a platform. */
export const tunnelPage = (session: Pick<SessionFacts, 'dashboardUrl'> | null, tunnelId: string): string | null =>
  session?.dashboardUrl == null ? null : `${session.dashboardUrl}/tunnels/${encodeURIComponent(tunnelId)}`;

/**
 * Adds the rows of tunnels and peer connections, label by label. With several entries, the rows of a label contain the names of the
 * entries.
 */
const addEntries = (rows: Rows, { tunnels, connections }: BlockFacts, colours: Colours): void => {
  const entries = [...tunnels, ...connections];
  const width = entries.length > 1 ? nameWidthOf(entries.map(({ name }) => name)) : 0;
  const nameOf = ({ name }: { readonly name: string }): string => (width === 0 ? '' : paddedName(name, width));
  for (const tunnel of tunnels)
    rows.addLink('Forwarding', oneLine(tunnel.publicUrl), forwarding(tunnel, nameOf, colours));
  for (const connection of connections) {
    const away = connection.state === 'away' ? ' (away)' : '';
    rows.add('Forwarding', `${oneLine(connectionText(connection))}${away}`, {
      before: nameOf(connection),
      paint: colours.bold,
    });
  }
  const addAll = (label: string, textOf: (tunnel: Tunnel) => string): void => {
    for (const tunnel of tunnels) {
      const text = textOf(tunnel);
      const paint = label === 'Health' && tunnel.health === 'unhealthy' ? colours.red : String;
      if (text !== '') rows.add(label, text, { before: nameOf(tunnel), paint });
    }
  };
  addAll('Health', healthWord);
  addAll('Policy', ({ guard }) => (guard === null ? '' : oneLine(guard)));
  addAll('Datagrams', ({ datagrams }) => (datagrams === null ? '' : wayText(datagrams)));
  for (const connection of connections) rows.add('Path', pathText(connection), { before: nameOf(connection) });
  addAll('Requests', (tunnel) => (protocolTraits(tunnel.protocol).carriesRequests ? countsText(tunnel) : ''));
  addAll('Traffic', (tunnel) => (protocolTraits(tunnel.protocol).carriesRequests ? '' : countsText(tunnel)));
  for (const connection of connections) {
    rows.add('Traffic', trafficText(connection.counts, 'p2p'), { before: nameOf(connection) });
  }
  for (const tunnel of tunnels) addPeers(rows, tunnel, nameOf(tunnel));
};

const forwarding = (tunnel: Tunnel, nameOf: (tunnel: Tunnel) => string, colours: Colours): LinkParts => ({
  before: nameOf(tunnel),
  after: `-> ${localText(tunnel)}${groupText(tunnel)}${tunnel.state === 'away' ? ' (away)' : ''}`,
  paint: tunnel.health === 'unhealthy' ? colours.red : colours.bold,
});

const addPeers = (rows: Rows, { peers }: Tunnel, before: string): void => {
  for (const peer of peers.slice(0, PEER_LINES_MAX)) rows.add('Peers', peerText(peer), { before });
  if (peers.length > PEER_LINES_MAX) rows.add('Peers', `and ${peers.length - PEER_LINES_MAX} more peers`, { before });
};

interface RowParts {
  /** Text before the row's content: the name of the tunnel, if the run has several tunnels. */
  readonly before?: string;
  readonly paint?: (text: string) => string;
}

interface LinkParts extends RowParts {
  readonly after?: string;
}

/**
 * Rows of the block, cut to the width of the terminal. An address is useful only in full, so a long address gets a separate line, which
 * may wrap.
 */
class Rows {
  readonly lines: string[] = [];
  readonly #look: BlockLook;
  /** Label of the last row. Of successive rows with the same label, only the first row shows the label. */
  #label = '';

  constructor(look: BlockLook) {
    this.#look = look;
  }

  add(label: string, text: string, { before = '', paint = String }: RowParts = {}): void {
    const shown = label === this.#label ? '' : label;
    this.#label = label;
    this.addLine(`${this.#look.colours.dim(shown.padEnd(LABEL_WIDTH))}${paint(leadOf(before) + text)}`);
  }

  addLine(line: string): void {
    this.lines.push(cutVisible(line, this.#look.width));
  }

  addLink(label: string, url: string, { before = '', after = '', paint = String }: LinkParts = {}): void {
    const { width } = this.#look;
    const lead = leadOf(before);
    const whole = `${url}${after === '' ? '' : ` ${after}`}`;
    if (LABEL_WIDTH + visibleLength(lead + whole) <= width) return this.add(label, whole, { before, paint });
    if (LABEL_WIDTH + visibleLength(lead + url) <= width) this.add(label, url, { before, paint });
    else {
      this.add(label, before, { paint });
      this.lines.push(paint(url));
    }
    if (after !== '') this.add(label, after, { before: ' '.repeat(visibleLength(before)), paint });
  }
}

const leadOf = (before: string): string => (before === '' ? '' : `${before}  `);
