// One registration from request to answer: admission, a port, its listener, the list.
import { decideAdmission, findTunnel, type PortWish } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { ControlMessageInput, MessageOf } from '@tunnel/protocol';
import { type Clock, randomId } from '@tunnel/runtime';
import type { PortPool } from '../pool/port-pool.ts';
import type { Tunnel } from '../pool/tunnel.ts';
import type { ControlConnection } from './control-connection.ts';
import type { Session } from './session.ts';
import type { SessionTable } from './session-table.ts';

/** More protocols come with later versions; the refusal names these. */
const PROTOCOLS = ['tcp'] as const;

export interface RegisterContext {
  readonly clock: Clock;
  readonly sessions: SessionTable;
  readonly ports: PortPool;
  readonly domain: string;
  readonly tunnelLimit: number;
  readonly isDraining: () => boolean;
}

type Request = MessageOf<'RegisterTunnel'>;

/** Answers on the connection, always. Registrations of one session run one after the other. */
export const registerTunnel = (
  context: RegisterContext,
  session: Session,
  connection: ControlConnection,
  request: Request,
): Promise<void> => {
  const answered = session.registering.then(async () => {
    connection.send(await answerTo(context, session, connection, request));
  });
  session.registering = answered.catch(() => undefined);
  return answered;
};

const answerTo = async (
  context: RegisterContext,
  session: Session,
  connection: ControlConnection,
  request: Request,
): Promise<ControlMessageInput> => {
  try {
    if (context.isDraining()) throw new Fault('EDGE_SHUTTING_DOWN');
    const tunnel = await openTunnel(context, session, connection, request);
    return {
      type: 'TunnelRegistered',
      request_id: request.request_id,
      tunnel_id: tunnel.tunnelId,
      name: tunnel.name,
      protocol: tunnel.protocol,
      label: tunnel.label,
      public_url: tunnel.publicUrl,
      assigned_port: tunnel.assignedPort,
      warnings: [],
    };
  } catch (error) {
    return tunnelError(request.request_id, Fault.from(error));
  }
};

const tunnelError = (requestId: string, fault: Fault): ControlMessageInput => ({
  type: 'TunnelError',
  request_id: requestId,
  code: fault.code,
  message: fault.message,
  retryable: fault.retryable,
});

const openTunnel = async (
  context: RegisterContext,
  session: Session,
  connection: ControlConnection,
  request: Request,
): Promise<Tunnel> => {
  // An id of another session is no id here: the tunnel is new, and gets its own.
  const known = request.tunnel_id === undefined ? undefined : findTunnel(session.state, request.tunnel_id);
  const decision = decideAdmission(
    {
      name: request.name,
      protocol: request.protocol,
      remotePort: request.remote_port,
      preferredPort: request.preferred_port,
    },
    {
      tunnelCount: session.tunnels.size,
      tunnelLimit: context.tunnelLimit,
      protocols: PROTOCOLS,
      ports: context.ports.range,
      heldPort: known?.port ?? null,
    },
  );
  if (decision.kind === 'refused') throw decision.fault;
  const tunnelId = known?.tunnelId ?? randomId('tun');
  const wished = decision.wish.kind === 'any' ? null : decision.wish.port;
  // A listener that is open already stays open: the session only changed its connection.
  const stays = known?.kind === 'live' && known.port === wished;
  const port = stays ? known.port : await openPort(context, tunnelId, decision.wish);
  const tunnel = describeTunnel(context, session, connection, { tunnelId, port, name: request.name });
  if (!context.sessions.list(session, connection, tunnel)) throw new Fault('TUNNEL_CLOSED');
  return tunnel;
};

const openPort = async ({ ports, isDraining }: RegisterContext, tunnelId: string, wish: PortWish): Promise<number> => {
  const port = await ports.open(tunnelId, wish);
  if (!isDraining()) return port;
  // The drain has closed all listeners and did not see this one come.
  ports.close(port);
  ports.release(port, tunnelId);
  throw new Fault('EDGE_SHUTTING_DOWN');
};

const describeTunnel = (
  context: RegisterContext,
  session: Session,
  connection: ControlConnection,
  { tunnelId, port, name }: { readonly tunnelId: string; readonly port: number; readonly name: string },
): Tunnel => {
  // The same tunnel as before its client was away: its counts and its beginning go on.
  const before = session.tunnels.get(tunnelId);
  return {
    tunnelId,
    sessionId: session.sessionId,
    name,
    protocol: 'tcp',
    label: String(port),
    publicUrl: `tcp://${context.domain}:${port}`,
    assignedPort: port,
    clientAddr: connection.peer.clientAddr,
    owner: session.owner,
    connectedSince: before?.connectedSince ?? context.clock.now(),
    counters: before?.counters ?? { requests: 0, bytes: 0, openConnections: 0 },
    session,
  };
};
