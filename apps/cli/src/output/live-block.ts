// What a terminal shows of a run, as rows with a name in front: whose it is, where it goes, what it forwards and what has passed.
import { type PeerConnection, protocolTraits, type SessionFacts, type Tunnel } from '@tunnel/client';
import { oneLine } from '../problem-report.ts';
import {
  countsText,
  durationText,
  groupText,
  healthMark,
  healthWord,
  localText,
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
  /** Since it was connected first; null: it never was. */
  readonly upMs: number | null;
  /** What waits for its end while it stops; empty: nothing. */
  readonly draining: string;
  /** The last one that is known. */
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
/** Peers of one tunnel that have a line; nobody reads more than that. */
const PEER_LINES_MAX = 10;

/** Until something is open only how far it has come: what follows may be a refusal, which is all that people should read then. */
export const blockLines = (facts: BlockFacts, look: BlockLook): string[] => {
  const { tunnels, connections, state } = facts;
  const rows = new Rows(look);
  const isOpen = tunnels.length + connections.length > 0;
  const { colours } = look;
  rows.add('Status', statusText(facts, isOpen), state === 'connected' && isOpen ? colours.green : colours.yellow);
  if (!isOpen) return rows.lines;
  addSession(rows, facts);
  const isNamed = tunnels.length + connections.length > 1;
  for (const tunnel of tunnels) addTunnel(rows, tunnel, isNamed, colours);
  for (const connection of connections) addConnection(rows, connection, isNamed, colours);
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

/** No seconds: a block that changes once a second is in the way of whoever resizes the window, copies from it or reads it over a slow line. */
const minutesText = (ms: number): string => {
  const minutes = Math.floor(ms / 60_000);
  const [days, hours] = [Math.floor(minutes / 1440), Math.floor(minutes / 60) % 24];
  if (minutes === 0) return '';
  if (days > 0) return ` for ${days} d ${hours} h`;
  return hours > 0 ? ` for ${hours} h ${minutes % 60} min` : ` for ${minutes} min`;
};

const addSession = (rows: Rows, { session, state, server, inspector, tunnels }: BlockFacts): void => {
  const { account = null, plan = null, regionId = '', regionName = null, latencyMs = null } = session ?? {};
  if (account !== null) rows.add('Account', `${oneLine(account)}${plan === null ? '' : ` (${oneLine(plan)} plan)`}`);
  const region = oneLine(regionName ?? regionId);
  const far = latencyMs === null || state !== 'connected' ? '' : `, ${durationText(latencyMs)}`;
  rows.add('Region', region === '' ? oneLine(server) : `${region} (${oneLine(server)})${far}`);
  const pages = dashboardOf(session, tunnels);
  if (pages !== null) rows.addLink('Dashboard', pages);
  // It ends with the run.
  if (inspector === null || state === 'stopped') return;
  if (inspector.url === null) rows.add('Inspector', 'off: all ports 4300 to 4399 of 127.0.0.1 are taken');
  else rows.addLink('Inspector', inspector.url);
};

const dashboardOf = (session: SessionFacts | null, tunnels: readonly Tunnel[]): string | null => {
  const [tunnel, ...others] = tunnels;
  const only = others.length === 0 ? tunnel : undefined;
  const url = only === undefined ? session?.dashboardUrl : tunnelPage(session, only.tunnelId);
  return url == null ? null : oneLine(url);
};

/** The page of a tunnel; null: there is no platform. */
export const tunnelPage = (session: Pick<SessionFacts, 'dashboardUrl'> | null, tunnelId: string): string | null =>
  session?.dashboardUrl == null ? null : `${session.dashboardUrl}/tunnels/${encodeURIComponent(tunnelId)}`;

const addTunnel = (rows: Rows, tunnel: Tunnel, isNamed: boolean, colours: Colours): void => {
  const name = [healthMark(tunnel), isNamed ? oneLine(tunnel.name) : ''].filter((part) => part !== '').join(' ');
  const away = tunnel.state === 'away' ? ' (away)' : '';
  const paint = tunnel.health === 'unhealthy' ? colours.red : colours.bold;
  const target = `-> ${localText(tunnel)}${groupText(tunnel)}${away}`;
  rows.addLink('Forwarding', oneLine(tunnel.publicUrl), { before: name, after: target, paint });
  if (tunnel.guard !== null) rows.add('Policy', oneLine(tunnel.guard));
  const word = tunnel.datagrams === null ? healthWord(tunnel) : wayText(tunnel.datagrams);
  const label = protocolTraits(tunnel.protocol).carriesRequests ? 'Requests' : 'Traffic';
  rows.add(label, `${word === '' ? '' : `${word}; `}${countsText(tunnel)}`);
  const { peers } = tunnel;
  for (const peer of peers.slice(0, PEER_LINES_MAX)) rows.add('', peerText(peer));
  if (peers.length > PEER_LINES_MAX) rows.add('', `and ${peers.length - PEER_LINES_MAX} more peers`);
};

const addConnection = (rows: Rows, connection: PeerConnection, isNamed: boolean, colours: Colours): void => {
  const name = isNamed ? `${oneLine(connection.name)}  ` : '';
  const away = connection.state === 'away' ? ' (away)' : '';
  rows.add('Forwarding', `${name}${oneLine(connectionText(connection))}${away}`, colours.bold);
  rows.add('Traffic', `${pathText(connection)}; ${trafficText(connection.counts, 'p2p')}`);
};

/** Rows as wide as the terminal. What can be cut is cut; an address is of use only whole, so it gets a line, or more, for itself. */
class Rows {
  readonly lines: string[] = [];
  readonly #look: BlockLook;

  constructor(look: BlockLook) {
    this.#look = look;
  }

  add(label: string, text: string, paint: (text: string) => string = String): void {
    this.addLine(`${this.#label(label)}${paint(text)}`);
  }

  addLine(line: string): void {
    this.lines.push(cutVisible(line, this.#look.width));
  }

  addLink(
    label: string,
    url: string,
    more: { readonly before?: string; readonly after?: string; readonly paint?: (text: string) => string } = {},
  ): void {
    const { width } = this.#look;
    const { paint = String, before = '', after = '' } = more;
    const lead = before === '' ? '' : `${before}  `;
    const whole = `${lead}${url}${after === '' ? '' : ` ${after}`}`;
    if (LABEL_WIDTH + visibleLength(whole) <= width) return this.add(label, whole, paint);
    if (LABEL_WIDTH + visibleLength(lead + url) <= width) this.add(label, `${lead}${url}`, paint);
    else {
      this.add(label, before, paint);
      this.lines.push(paint(url));
    }
    if (after !== '') this.add('', after, paint);
  }

  #label(label: string): string {
    return this.#look.colours.dim(label.padEnd(LABEL_WIDTH));
  }
}
