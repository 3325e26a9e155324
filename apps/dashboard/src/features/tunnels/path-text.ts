// Texts about dropped datagrams and about the paths of datagrams and peer connections. Pure functions; docs/udp.md and docs/p2p.md
// explain the details.
import type { DropReason, EdgeFlows, EdgePeer, RelayReason } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';

export interface WayText {
  readonly badge: string;
  readonly tone: Tone;
  readonly text: string;
}

const CARRIER_REASONS: Readonly<Record<EdgeFlows['reason'], string>> = {
  '': 'Datagrams use the client’s TCP connection.',
  probing: 'Trying UDP between the client and the edge.',
  'udp-blocked': 'UDP is blocked between the client and the edge. Datagrams use the client’s TCP connection instead.',
  'went-silent': 'The UDP path stopped responding. Datagrams use the TCP connection. UDP is retried automatically.',
  off: 'The UDP path is turned off on the edge or the client. Datagrams use the TCP connection.',
};

/** Returns a text about the path of datagrams between the edge and the client. */
export const datagramWay = ({ path, reason }: Pick<EdgeFlows, 'path' | 'reason'>): WayText =>
  path === 'udp'
    ? { badge: 'udp', tone: 'good', text: 'Datagrams use encrypted UDP between the client and the edge.' }
    : { badge: 'carrier', tone: 'neutral', text: CARRIER_REASONS[reason] };

/** One-line explanations for dropped datagrams, by reason. */
const DROPS: Readonly<Record<DropReason, string>> = {
  behind: 'The connection to the client was more than 100 ms behind. Late datagrams are dropped, not queued',
  path: 'More datagrams arrived than the UDP path between client and edge can carry',
  limit: 'The flow limit of the tunnel or of an address was reached',
  share: 'The edge was full, and this account was using more than its share of flows',
  rate: 'Too many new flows per second from one network',
  unconfirmed: 'Responses too large for an unconfirmed visitor',
  loop: 'Sent from a port of the edge, or from port 0',
  away: 'The client was not connected',
  local: 'The local service rejected the datagrams, or the port was closed',
  'too-large': 'Larger than the maximum datagram size',
  unopened: 'Sent to a flow that had ended or was not accepted by the client yet',
  denied: 'A policy rejected the visitor',
};

export interface Drop {
  readonly reason: DropReason;
  readonly count: number;
  readonly text: string;
}

/** Returns the reasons for which datagrams were dropped, most frequent first. */
export const dropsOf = (dropped: EdgeFlows['dropped']): Drop[] =>
  (Object.keys(DROPS) as DropReason[])
    .map((reason) => ({ reason, count: dropped[reason], text: DROPS[reason] }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count);

const RELAY_REASONS: Readonly<Record<RelayReason, string>> = {
  '': 'through the edge',
  punching: 'trying a direct path',
  'udp-blocked': 'UDP is blocked in one of the networks',
  'random-ports': 'both networks use random ports',
  'no-answer': 'the networks block direct traffic',
  'went-silent': 'the direct path went silent; the client retries later',
  off: 'direct paths are switched off',
  'no-transport': 'direct paths are not supported on one of the computers',
};

/** Returns a text about the path of new connections of a peer. */
export const peerWay = ({ path, reason }: Pick<EdgePeer, 'path' | 'reason'>): WayText =>
  path === 'direct'
    ? { badge: 'direct', tone: 'good', text: 'between the two clients' }
    : { badge: 'relay', tone: 'neutral', text: RELAY_REASONS[reason] };
