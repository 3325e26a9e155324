// One registration from request to answer: admission, a place for the public, the list.
import { decideAdmission, findTunnel, type Place, type PlaceWish } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { ControlMessageInput, MessageOf } from '@tunnel/protocol';
import { type Clock, randomId } from '@tunnel/runtime';
import type { Places } from '../pool/places.ts';
import type { HttpSettings, Tunnel } from '../pool/tunnel.ts';
import type { ControlConnection } from './control-connection.ts';
import { httpUrl, type PublicHttp, tcpUrl } from './public-url.ts';
import type { Session } from './session.ts';
import type { SessionTable } from './session-table.ts';

/** More protocols come with later versions; the refusal names these. */
const PROTOCOLS = ['http', 'https', 'tcp'] as const;
type Protocol = (typeof PROTOCOLS)[number];

export interface RegisterContext {
  readonly clock: Clock;
  readonly sessions: SessionTable;
  readonly places: Places;
  readonly domain: string;
  readonly publicHttp: PublicHttp;
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
      ...(tunnel.assignedPort === null ? {} : { assigned_port: tunnel.assignedPort }),
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
      subdomain: request.subdomain,
      preferredSubdomain: request.preferred_subdomain,
    },
    {
      tunnelCount: session.tunnels.size,
      tunnelLimit: context.tunnelLimit,
      protocols: PROTOCOLS,
      ports: context.places.ports.range,
      heldPlace: known?.place ?? null,
    },
  );
  if (decision.kind === 'refused') throw decision.fault;
  const tunnelId = known?.tunnelId ?? randomId('tun');
  // A place that is open already stays open: the session only changed its connection.
  const stays = known?.kind === 'live' && isWished(known.place, decision.wish);
  const place = stays ? known.place : await openPlace(context, tunnelId, decision.wish);
  const tunnel = describeTunnel(context, session, connection, { tunnelId, place, request });
  if (!context.sessions.list(session, connection, tunnel)) throw new Fault('TUNNEL_CLOSED');
  return tunnel;
};

const isWished = (place: Place, { kind, wish }: PlaceWish): boolean => {
  if (wish.kind === 'any') return false;
  return kind === 'port'
    ? place.kind === 'port' && place.port === wish.port
    : place.kind === 'name' && place.name === wish.name;
};

const openPlace = async (
  { places, isDraining }: RegisterContext,
  tunnelId: string,
  wish: PlaceWish,
): Promise<Place> => {
  const place = await places.open(tunnelId, wish);
  if (!isDraining()) return place;
  // The drain has closed all places and did not see this one come.
  places.close(place);
  places.release(place, tunnelId);
  throw new Fault('EDGE_SHUTTING_DOWN');
};

const describeTunnel = (
  context: RegisterContext,
  session: Session,
  connection: ControlConnection,
  { tunnelId, place, request }: { readonly tunnelId: string; readonly place: Place; readonly request: Request },
): Tunnel => {
  // The same tunnel as before its client was away: its counts and its beginning go on.
  const before = session.tunnels.get(tunnelId);
  const { domain, publicHttp } = context;
  const isPort = place.kind === 'port';
  return {
    tunnelId,
    sessionId: session.sessionId,
    name: request.name,
    // Admission let only these pass.
    protocol: request.protocol as Protocol,
    place,
    label: isPort ? String(place.port) : place.name,
    publicUrl: isPort ? tcpUrl(domain, place.port) : httpUrl(publicHttp, place.name, domain),
    assignedPort: isPort ? place.port : null,
    http: isPort ? null : httpSettings(request),
    clientAddr: connection.peer.clientAddr,
    owner: session.owner,
    connectedSince: before?.connectedSince ?? context.clock.now(),
    counters: before?.counters ?? { requests: 0, bytes: 0, openConnections: 0 },
    session,
  };
};

const httpSettings = (request: Request): HttpSettings => ({
  hostHeader: hostHeaderOf(request),
  localProtocol: request.local_protocol,
  capture: request.capture,
});

/** local_addr is free text for people: it becomes a header only when it can stand in one. */
const VISIBLE = /^[!-~]+$/;

const hostHeaderOf = ({ host_header, local_addr }: Request): string | null => {
  if (host_header === 'keep') return null;
  if (host_header !== 'rewrite') return host_header;
  return VISIBLE.test(local_addr) ? local_addr : null;
};
