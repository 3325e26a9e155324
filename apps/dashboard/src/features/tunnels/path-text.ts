// Why datagrams were dropped and how datagrams and peers travel, in the words of people. Pure; docs/udp.md and docs/p2p.md say more.
import type { DropReason, EdgeFlows, EdgePeer, RelayReason } from '@tunnel/contract';
import type { Tone } from '../../ui/badge.tsx';

export interface WayText {
  readonly badge: string;
  readonly tone: Tone;
  readonly text: string;
}

const CARRIER_REASONS: Readonly<Record<EdgeFlows['reason'], string>> = {
  '': 'Datagrams take the TCP connection of the client.',
  probing: 'UDP between the client and the edge is being tried.',
  'udp-blocked': 'No UDP gets through between the client and the edge. Datagrams take its TCP connection, which works.',
  'went-silent': 'The UDP path went silent. Datagrams take the TCP connection; UDP is tried again by itself.',
  off: 'The edge or the client has the UDP path switched off. Datagrams take the TCP connection.',
};

/** How datagrams go between edge and client. */
export const datagramWay = ({ path, reason }: Pick<EdgeFlows, 'path' | 'reason'>): WayText =>
  path === 'udp'
    ? { badge: 'udp', tone: 'good', text: 'Datagrams go over UDP between the client and the edge, encrypted.' }
    : { badge: 'carrier', tone: 'neutral', text: CARRIER_REASONS[reason] };

/** One line each: what happened, and what helps. */
const DROPS: Readonly<Record<DropReason, string>> = {
  behind: 'The connection to the client was more than 100 ms behind: late datagrams are dropped, not queued',
  path: 'More came at once than the UDP path between client and edge takes',
  limit: 'The tunnel, or one address, had its limit of flows',
  share: 'The edge had all the flows it can have, and this account more than its share',
  rate: 'Too many new flows a second from one network',
  unconfirmed: 'Large answers to a visitor that has not shown yet that it receives them',
  loop: 'They came from the edge’s own ports, or from port 0',
  away: 'The client was not connected',
  local: 'The local service refused them, or its port was closed',
  'too-large': 'Larger than a datagram may be',
  unopened: 'They came for a flow that had ended, or that the client had not taken yet',
  denied: 'A policy refused the visitor',
};

export interface Drop {
  readonly reason: DropReason;
  readonly count: number;
  readonly text: string;
}

/** Those that happened, the most first. */
export const dropsOf = (dropped: EdgeFlows['dropped']): Drop[] =>
  (Object.keys(DROPS) as DropReason[])
    .map((reason) => ({ reason, count: dropped[reason], text: DROPS[reason] }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count);

const RELAY_REASONS: Readonly<Record<RelayReason, string>> = {
  '': 'through the edge',
  punching: 'trying to go direct',
  'udp-blocked': 'UDP is blocked in one of the networks',
  'random-ports': 'both networks use random ports',
  'no-answer': 'the networks let nothing through',
  'went-silent': 'the direct path went silent; tried again later',
  off: 'direct paths are switched off',
  'no-transport': 'no direct transport on one of the machines',
};

/** How new connections of a peer travel. */
export const peerWay = ({ path, reason }: Pick<EdgePeer, 'path' | 'reason'>): WayText =>
  path === 'direct'
    ? { badge: 'direct', tone: 'good', text: 'between the two clients' }
    : { badge: 'relay', tone: 'neutral', text: RELAY_REASONS[reason] };
