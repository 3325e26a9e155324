// Handlers for control messages of authenticated clients.

import { Fault } from '@tunnel/errors';
import { CAPABILITY, type ControlMessage, type MessageOf } from '@tunnel/protocol';
import type { TunnelProtocol } from '@tunnel/rules/tunnels';
import type { PeerJoins } from '../ingress/p2p/peer-joins.ts';
import type { UdpListeners } from '../ingress/udp/udp-listeners.ts';
import type { Registry } from '../routing/registry.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { SessionMuxes } from './carriers.ts';
import type { ControlConnection } from './control-connection.ts';
import { type RegisterContext, registerTunnel, tunnelError } from './registrations.ts';
import type { Session } from './session.ts';

export interface MessageContext extends RegisterContext {
  readonly tunnels: Pick<Registry, 'get' | 'at'>;
  readonly muxes: SessionMuxes;
  readonly udp: Pick<UdpListeners, 'reported'>;
}

/**
 * Handles a message. `session` is undefined once the client has announced its shutdown; its connection stays open until its streams have
 * finished.
 */
export const handleMessage = (
  context: MessageContext,
  session: Session | undefined,
  connection: ControlConnection,
  message: ControlMessage,
): Promise<void> | void => {
  switch (message.type) {
    case 'RegisterTunnel':
      if (session !== undefined) return registerTunnel(context, session, connection, message);
      return connection.send(tunnelError(message.request_id, new Fault('TUNNEL_CLOSED')));
    case 'UnregisterTunnel':
      return unregister(context, session, connection, message);
    case 'RequestCarriers': {
      const mux = session?.upstream.mux ?? null;
      const tokens = mux === null ? [] : context.muxes.issueTokens(mux, message.count);
      return connection.send({ type: 'CarrierTokens', tokens });
    }
    case 'ShuttingDown':
      if (session !== undefined) context.sessions.end(session, `client stopping: ${message.reason}`, 'left');
      return;
    case 'TunnelHealthy': {
      const tunnel = reportedTunnel(context, session, message.tunnel_id);
      if (tunnel !== undefined) context.groups.reportHealthy(tunnel);
      return;
    }
    case 'TunnelUnhealthy': {
      const { reason, consecutive_failures: consecutiveFailures } = message;
      const tunnel = reportedTunnel(context, session, message.tunnel_id);
      if (tunnel !== undefined) context.groups.reportUnhealthy(tunnel, { reason, consecutiveFailures });
      return;
    }
    case 'DatagramDrops': {
      const tunnel = ownTunnel(context, session, message.tunnel_id);
      if (tunnel !== undefined) context.udp.reported(tunnel, message.drops);
      return;
    }
    case 'ConnectPeer':
      return connectPeer(context, session, connection, message);
    case 'DisconnectPeer':
      return disconnectPeer(context, session, message);
    case 'PeerReport':
      return reportPeer(context, session, message);
    // A Pong has no further effect: receiving it already counted as a sign of life.
    case 'Pong':
    case 'Error':
      return;
    case 'Auth':
      return connection.sendFault(
        new Fault('CONTROL_BAD_FRAME', { reason: 'Auth: the connection already has a session' }),
      );
    default:
      return connection.sendFault(
        new Fault('CONTROL_BAD_FRAME', { reason: `${message.type}: clients cannot send this frame` }),
      );
  }
};

/** Returns the tunnel of a health report. Undefined if load balancing is off, or if the client has no such open tunnel. */
const reportedTunnel = (context: MessageContext, session: Session | undefined, tunnelId: string): Tunnel | undefined =>
  context.loadBalancing ? ownTunnel(context, session, tunnelId) : undefined;

const ownTunnel = ({ tunnels }: MessageContext, session: Session | undefined, tunnelId: string): Tunnel | undefined => {
  const tunnel = tunnels.get(tunnelId);
  return tunnel?.sessionId === session?.sessionId ? tunnel : undefined;
};

/** Closes a tunnel. Waits for earlier registrations, because the registration of this tunnel may still be running. */
const unregister = async (
  { sessions }: MessageContext,
  session: Session | undefined,
  connection: ControlConnection,
  { request_id, tunnel_id }: MessageOf<'UnregisterTunnel'>,
): Promise<void> => {
  await session?.registrations.settled();
  if (session === undefined || sessions.of(connection) !== session || !sessions.endTunnel(session, tunnel_id)) {
    return connection.send(tunnelError(request_id, new Fault('TUNNEL_UNKNOWN'), tunnel_id));
  }
  connection.send({ type: 'TunnelUnregistered', request_id, tunnel_id });
};

// ---- what subscribers and publishers of p2p tunnels say; who may join is decided elsewhere ----

interface PeerContext {
  readonly peers: PeerJoins;
  /** Tunnel protocols that the operator has turned off. */
  readonly switchedOff: readonly TunnelProtocol[];
  readonly isDraining: () => boolean;
}

/** Joins a client to a p2p tunnel. Always sends a response on the connection. */
const connectPeer = (
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
  // Without a session: the client has announced its shutdown.
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

const disconnectPeer = (
  { peers }: PeerContext,
  session: Session | undefined,
  { peer_id }: MessageOf<'DisconnectPeer'>,
): void => {
  if (session !== undefined) peers.leave(session.sessionId, peer_id);
};

const reportPeer = ({ peers }: PeerContext, session: Session | undefined, message: MessageOf<'PeerReport'>): void => {
  if (session !== undefined) peers.report(session.sessionId, message);
};
