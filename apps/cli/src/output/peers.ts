// Texts about the peers of p2p tunnels: joined and left peers, the path of connections, and the reason for the path.
import type { ListenAddress, PeerConnection, PublishedPeer, StatusEvent } from '@tunnel/client';
import { oneLine } from '../io/problem-report.ts';

type PathEvent = Extract<StatusEvent, { type: 'path' }>;
type PeerEvent = Extract<StatusEvent, { type: 'peer' }>;

/** Reasons for relayed connections. docs/p2p.md lists remedies for the reasons. */
const RELAY_REASONS: Readonly<Record<string, string>> = {
  punching: 'trying a direct path',
  'udp-blocked': 'UDP is blocked in one of the networks',
  'random-ports': 'both networks use random ports',
  'no-answer': 'the networks block direct traffic',
  'went-silent': 'the direct path went silent; the client retries later',
  off: 'direct paths are switched off',
  'no-transport': 'direct paths are not supported on this computer',
};

/** Describes the path of new connections: `direct (12 ms)`, or `relay` with the reason. */
export const pathText = ({ path, reason, rttMs }: Pick<PathEvent, 'path' | 'reason' | 'rttMs'>): string => {
  if (path === 'relay') return `relay (${RELAY_REASONS[reason] ?? oneLine(reason)})`;
  return rttMs === null ? 'direct' : `direct (${rttMs < 9.95 ? rttMs : Math.round(rttMs)} ms)`;
};

export const listenText = ({ host, port }: ListenAddress): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

/** Describes a peer connection in the form of a tunnel's route, but in the reverse direction. */
export const connectionText = ({ p2pName, listen }: PeerConnection): string =>
  listen === null ? `p2p://${p2pName}` : `${listenText(listen)} -> p2p://${p2pName}`;

export const peerEventText = ({ state, clientAddr, peerId, reason }: PeerEvent): string => {
  const who = oneLine(clientAddr === '' ? peerId : clientAddr);
  return state === 'joined' ? `${who} joined` : `${who} left (${oneLine(reason)})`;
};

/** Describes a subscriber of a p2p tunnel, on one line. */
export const peerText = (peer: PublishedPeer): string =>
  `${oneLine(peer.clientAddr === '' ? peer.peerId : peer.clientAddr)}: ${pathText(peer)}`;
