// What subscribers and publishers of p2p tunnels say on their control connections, and what they are answered. Who may join is decided elsewhere.
import type { TunnelProtocol } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { CAPABILITY, type MessageOf } from '@tunnel/protocol';
import type { PeerJoins } from '../ingress/p2p/peer-joins.ts';
import type { ControlConnection } from './control-connection.ts';
import type { Session } from './session.ts';

interface PeerContext {
  readonly peers: PeerJoins;
  /** Protocols that the operator does not want here. */
  readonly switchedOff: readonly TunnelProtocol[];
  readonly isDraining: () => boolean;
}

/** Answers on the connection, always. */
export const connectPeer = (
  context: PeerContext,
  session: Session | undefined,
  connection: ControlConnection,
  message: MessageOf<'ConnectPeer'>,
): void => {
  const { request_id } = message;
  const answer = earlyRefusal(context, session) ?? joinOf(context, session as Session, connection, message);
  if (!(answer instanceof Fault)) return connection.send({ type: 'PeerConnected', request_id, peer_id: answer });
  const { code, message: text, retryable } = answer;
  connection.send({ type: 'PeerError', request_id, code, message: text, retryable });
};

const earlyRefusal = ({ switchedOff, isDraining }: PeerContext, session: Session | undefined): Fault | null => {
  // The client has said that it stops.
  if (session === undefined) return new Fault('TUNNEL_CLOSED');
  if (isDraining()) return new Fault('EDGE_SHUTTING_DOWN');
  if (!session.capabilities.includes(CAPABILITY.P2P)) {
    return new Fault('TUNNEL_PROTOCOL_UNSUPPORTED', { protocol: 'p2p' });
  }
  return switchedOff.includes('p2p') ? new Fault('TUNNEL_PROTOCOL_OFF', { protocol: 'p2p' }) : null;
};

const joinOf = (
  { peers }: PeerContext,
  { owner, sessionId }: Session,
  connection: ControlConnection,
  { p2p_name, p2p_secret_hash, service, peer_id }: MessageOf<'ConnectPeer'>,
): string | Fault => {
  const request = { name: p2p_name, secretHash: p2p_secret_hash, service, owner, clientId: sessionId, peerId: peer_id };
  const joined = peers.join(request, connection.peer.clientAddr);
  return joined instanceof Fault ? joined : joined.peer.peerId;
};

export const disconnectPeer = (
  { peers }: PeerContext,
  session: Session | undefined,
  { peer_id }: MessageOf<'DisconnectPeer'>,
): void => {
  if (session !== undefined) peers.leave(session.sessionId, peer_id);
};

export const reportPeer = (
  { peers }: PeerContext,
  session: Session | undefined,
  message: MessageOf<'PeerReport'>,
): void => {
  if (session !== undefined) peers.report(session.sessionId, message);
};
