// What an authenticated client may say, and what is done about it.
import { Fault } from '@tunnel/errors';
import type { ControlMessage, MessageOf } from '@tunnel/protocol';
import type { ControlConnection } from './control-connection.ts';
import { type RegisterContext, registerTunnel } from './register-tunnel.ts';
import type { Session } from './session.ts';
import type { SessionMuxes } from './session-muxes.ts';

export interface MessageContext extends RegisterContext {
  readonly muxes: SessionMuxes;
}

/** `session` is undefined once the client has said that it stops: its connection lives on until its streams have finished. */
export const handleMessage = (
  context: MessageContext,
  session: Session | undefined,
  connection: ControlConnection,
  message: ControlMessage,
): Promise<void> | void => {
  switch (message.type) {
    case 'RegisterTunnel':
      if (session !== undefined) return registerTunnel(context, session, connection, message);
      return refuseTunnel(connection, message.request_id, new Fault('TUNNEL_CLOSED'));
    case 'UnregisterTunnel':
      return unregister(context, session, connection, message);
    case 'RequestCarriers': {
      const mux = session?.mux ?? null;
      const tokens = mux === null ? [] : context.muxes.issueTokens(mux, message.count);
      return connection.send({ type: 'CarrierTokens', tokens });
    }
    case 'ShuttingDown':
      if (session !== undefined) context.sessions.end(session, `the client stops: ${message.reason}`);
      return;
    // Pong has been heard, which was its purpose. Health means nothing to a tunnel without a group.
    case 'Pong':
    case 'Error':
    case 'TunnelHealthy':
    case 'TunnelUnhealthy':
      return;
    case 'Auth':
      return connection.sendFault(
        new Fault('CONTROL_BAD_FRAME', { reason: 'Auth: this connection has a session already' }),
      );
    default:
      return connection.sendFault(
        new Fault('CONTROL_BAD_FRAME', { reason: `${message.type}: not for a client to send` }),
      );
  }
};

/** Waits for registrations before it: the one that made the tunnel may still be under way. */
const unregister = async (
  { sessions }: MessageContext,
  session: Session | undefined,
  connection: ControlConnection,
  { request_id, tunnel_id }: MessageOf<'UnregisterTunnel'>,
): Promise<void> => {
  await session?.registering;
  if (session === undefined || sessions.of(connection) !== session || !sessions.endTunnel(session, tunnel_id)) {
    return refuseTunnel(connection, request_id, new Fault('TUNNEL_UNKNOWN'), tunnel_id);
  }
  connection.send({ type: 'TunnelUnregistered', request_id, tunnel_id });
};

const refuseTunnel = (connection: ControlConnection, requestId: string, fault: Fault, tunnelId?: string): void =>
  connection.send({
    type: 'TunnelError',
    request_id: requestId,
    ...(tunnelId === undefined ? {} : { tunnel_id: tunnelId }),
    code: fault.code,
    message: fault.message,
    retryable: fault.retryable,
  });
