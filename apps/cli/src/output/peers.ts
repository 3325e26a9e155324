// The words for peers: who came and went, by which way connections go, and why.
import type { ListenAddress, PeerConnection, PublishedPeer, StatusEvent } from '@tunnel/client';
import { oneLine } from '../io/problem-report.ts';

type PathEvent = Extract<StatusEvent, { type: 'path' }>;
type PeerEvent = Extract<StatusEvent, { type: 'peer' }>;

/** docs/p2p.md says of each what can be done. */
const RELAY_REASONS: Readonly<Record<string, string>> = {
  punching: 'trying a direct path',
  'udp-blocked': 'UDP is blocked in one of the networks',
  'random-ports': 'both networks use random ports',
  'no-answer': 'the networks block direct traffic',
  'went-silent': 'the direct path went silent; the client retries later',
  off: 'direct paths are switched off',
  'no-transport': 'direct paths are not supported on this computer',
};

/** Where new connections go: `direct (12 ms)`, or `relay` and why. */
export const pathText = ({ path, reason, rttMs }: Pick<PathEvent, 'path' | 'reason' | 'rttMs'>): string => {
  if (path === 'relay') return `relay (${RELAY_REASONS[reason] ?? oneLine(reason)})`;
  return rttMs === null ? 'direct' : `direct (${rttMs < 9.95 ? rttMs : Math.round(rttMs)} ms)`;
};

export const listenText = ({ host, port }: ListenAddress): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

/** As a route is shown, the other way round. */
export const connectionText = ({ p2pName, listen }: PeerConnection): string =>
  listen === null ? `p2p://${p2pName}` : `${listenText(listen)} -> p2p://${p2pName}`;

export const peerEventText = ({ state, clientAddr, peerId, reason }: PeerEvent): string => {
  const who = oneLine(clientAddr === '' ? peerId : clientAddr);
  return state === 'joined' ? `${who} joined` : `${who} left (${oneLine(reason)})`;
};

/** Of a p2p tunnel, one for each subscriber. */
export const peerText = (peer: PublishedPeer): string =>
  `${oneLine(peer.clientAddr === '' ? peer.peerId : peer.clientAddr)}: ${pathText(peer)}`;
