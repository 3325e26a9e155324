// One registration from request to answer: admission, an endpoint for the public or in a group, the list.
import {
  type Admission,
  decideAdmission,
  findTunnel,
  type LeasedEndpoint,
  type SessionTunnel,
  type TunnelGroup,
  type WantedEndpoint,
  type WantedGroup,
} from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { ControlMessageInput, MessageOf } from '@tunnel/protocol';
import { type Clock, randomId } from '@tunnel/runtime';
import type { Backend, TunnelAsked } from '../backend/backend.ts';
import type { EndpointRegistry, WantedLease } from '../routing/endpoints.ts';
import type { Groups } from '../routing/groups.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { ControlConnection } from './control-connection.ts';
import { describeTunnel } from './describe-tunnel.ts';
import type { PublicHttp } from './public-url.ts';
import type { Session } from './session.ts';
import type { SessionTable } from './session-table.ts';

/** More protocols come with later versions; the refusal names these. */
const PROTOCOLS = ['http', 'https', 'tcp'] as const;

export interface RegisterContext {
  readonly clock: Clock;
  readonly backend: Pick<Backend, 'admitTunnel' | 'admissionEnded'>;
  readonly sessions: SessionTable;
  readonly endpoints: EndpointRegistry;
  readonly groups: Groups;
  /** The kill switch. */
  readonly loadBalancing: boolean;
  /** What the client should be told of its alert URL; null: nothing. */
  readonly checkAlertUrl: (url: string, withinMs: number) => Promise<string | null>;
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
    for (const answer of await answerTo(context, session, connection, request)) connection.send(answer);
  });
  session.registering = answered.catch(() => undefined);
  return answered;
};

const answerTo = async (
  context: RegisterContext,
  session: Session,
  connection: ControlConnection,
  request: Request,
): Promise<readonly ControlMessageInput[]> => {
  try {
    if (context.isDraining()) throw new Fault('EDGE_SHUTTING_DOWN');
    const warnings = await warningsOf(context, session, request);
    const { tunnel, isFirst } = await openTunnel(context, session, connection, request);
    const assigned = tunnel.assignedPort === null ? {} : { assigned_port: tunnel.assignedPort };
    const answer: ControlMessageInput = {
      type: 'TunnelRegistered',
      request_id: request.request_id,
      tunnel_id: tunnel.tunnelId,
      name: tunnel.name,
      protocol: tunnel.protocol,
      label: tunnel.label,
      public_url: tunnel.publicUrl,
      ...assigned,
      warnings: [...warnings, ...portWarning(tunnel, request)],
    };
    // The first member of a tcp group is told that the listener is bound; who stands alone, or comes later, is not.
    if (!isFirst || tunnel.assignedPort === null) return [answer];
    return [answer, { type: 'Registered', tunnel_id: tunnel.tunnelId, assigned_port: tunnel.assignedPort }];
  } catch (error) {
    return [tunnelError(request.request_id, Fault.from(error))];
  }
};

const warningsOf = async (
  { loadBalancing, checkAlertUrl, clock }: RegisterContext,
  session: Session,
  { group, health_check }: Request,
): Promise<string[]> => {
  const url = health_check?.alert_webhook;
  if (!loadBalancing || url === undefined) return [];
  if (group === undefined) return ['alert_webhook: nothing is sent for a tunnel without a group'];
  const begunAt = clock.monotonic();
  const warning = await checkAlertUrl(url, session.alertLookupMs);
  session.alertLookupMs -= clock.monotonic() - begunAt;
  return warning === null ? [] : [warning];
};

const portWarning = ({ group, assignedPort }: Tunnel, { remote_port }: Request): string[] =>
  group === null || remote_port === undefined || remote_port === assignedPort
    ? []
    : [`remote_port ${remote_port}: the group has port ${assignedPort} already`];

const tunnelError = (requestId: string, fault: Fault): ControlMessageInput => ({
  type: 'TunnelError',
  request_id: requestId,
  code: fault.code,
  message: fault.message,
  retryable: fault.retryable,
});

interface Opened {
  readonly tunnel: Tunnel;
  /** A group began with it. */
  readonly isFirst: boolean;
}

const openTunnel = async (
  context: RegisterContext,
  session: Session,
  connection: ControlConnection,
  request: Request,
): Promise<Opened> => {
  // An id of another session is no id here: the tunnel is new, and gets its own.
  let known = request.tunnel_id === undefined ? undefined : findTunnel(session.state, request.tunnel_id);
  const decision = admit(context, session, request, known);
  if (decision.kind === 'refused') throw decision.fault;
  const { wanted } = decision;
  if (known !== undefined && (known.endpoint.kind === 'member') !== (wanted.kind === 'group')) {
    // It joins a group now, or leaves one to stand alone: another tunnel, and the old one may hold the very name it wants.
    context.sessions.endTunnel(session, known.tunnelId);
    known = undefined;
  }
  const facts = { ...context, session, connection, request, known, tunnelId: known?.tunnelId ?? randomId('tun') };
  // A tunnel that comes back was admitted when it came first.
  if (known !== undefined) return findPlace(facts, wanted);
  try {
    const refusal = await context.backend.admitTunnel(questionOf(facts, wanted));
    if (refusal !== null) throw refusal;
    if (context.sessions.of(connection) !== session) throw new Fault('TUNNEL_CLOSED');
    return await findPlace(facts, wanted);
  } finally {
    context.backend.admissionEnded(facts.tunnelId);
  }
};

const questionOf = ({ session, request, tunnelId, clock }: Registration, wanted: WantedEndpoint): TunnelAsked => ({
  tunnelId,
  sessionId: session.sessionId,
  name: request.name,
  // Admission let only these pass.
  protocol: request.protocol as Tunnel['protocol'],
  owner: session.owner,
  keyId: session.keyId,
  customSubdomain: isOfChoice(wanted),
  at: clock.now(),
});

/** A group's name in the public's eye is always chosen: all its members have to know it. */
const isOfChoice = (wanted: WantedEndpoint): boolean =>
  wanted.kind === 'group'
    ? wanted.wanted.endpoint.kind === 'name'
    : wanted.kind === 'name' && wanted.wanted.kind === 'exact';

const findPlace = async (facts: Registration, wanted: WantedEndpoint): Promise<Opened> => {
  if (wanted.kind === 'group') return joinGroup(facts, wanted.wanted);
  const { sessions, session, connection } = facts;
  const tunnel = await standAlone(facts, wanted);
  if (!sessions.list(session, connection, tunnel)) throw new Fault('TUNNEL_CLOSED');
  return { tunnel, isFirst: false };
};

const admit = (
  context: RegisterContext,
  session: Session,
  request: Request,
  known: SessionTunnel | undefined,
): Admission =>
  decideAdmission(
    {
      name: request.name,
      protocol: request.protocol,
      remotePort: request.remote_port,
      preferredPort: request.preferred_port,
      subdomain: request.subdomain,
      preferredSubdomain: request.preferred_subdomain,
      group: request.group,
      groupKeyHash: request.group_key_hash,
      healthCheck: request.health_check,
    },
    {
      tunnelCount: session.tunnels.size,
      tunnelLimit: context.tunnelLimit,
      protocols: PROTOCOLS,
      ports: context.endpoints.ports.range,
      heldEndpoint: known?.endpoint ?? null,
      loadBalancing: context.loadBalancing,
    },
  );

interface Registration extends RegisterContext {
  readonly session: Session;
  readonly connection: ControlConnection;
  readonly request: Request;
  readonly known: SessionTunnel | undefined;
  readonly tunnelId: string;
}

const joinGroup = ({ groups, sessions, ...facts }: Registration, wanted: WantedGroup): Promise<Opened> => {
  const { session, connection } = facts;
  return groups.join({
    wanted,
    owner: session.owner,
    isCurrent: () => sessions.of(connection) === session,
    makeMember: (group: TunnelGroup<Tunnel>) =>
      describeTunnel({
        ...facts,
        endpoint: { kind: 'member', groupId: group.groupId },
        reachedAt: group.endpoint,
        group,
      }),
    onJoined: (tunnel) => void sessions.list(session, connection, tunnel),
  });
};

const standAlone = async (facts: Registration, wanted: WantedLease): Promise<Tunnel> => {
  const { known } = facts;
  // An endpoint that is open already stays open: the session only changed its connection.
  const stays = known?.kind === 'live' && known.endpoint.kind !== 'member' && isWished(known.endpoint, wanted);
  const endpoint = stays ? (known.endpoint as LeasedEndpoint) : await openEndpoint(facts, wanted);
  return describeTunnel({ ...facts, endpoint, reachedAt: endpoint, group: null });
};

const isWished = (endpoint: LeasedEndpoint, { kind, wanted }: WantedLease): boolean => {
  if (wanted.kind === 'any') return false;
  return kind === 'port'
    ? endpoint.kind === 'port' && endpoint.port === wanted.port
    : endpoint.kind === 'name' && endpoint.name === wanted.name;
};

const openEndpoint = async (
  { endpoints, isDraining, tunnelId }: Registration,
  wanted: WantedLease,
): Promise<LeasedEndpoint> => {
  const endpoint = await endpoints.open(tunnelId, wanted);
  if (!isDraining()) return endpoint;
  // The drain has closed all endpoints and did not see this one come.
  endpoints.close(endpoint);
  endpoints.release(endpoint, tunnelId);
  throw new Fault('EDGE_SHUTTING_DOWN');
};
