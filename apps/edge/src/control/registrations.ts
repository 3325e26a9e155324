// Handles a registration from request to response: admission, an endpoint (separate or of a group), and the resulting tunnel in the
// registry.
import { domainToASCII } from 'node:url';
import { Fault } from '@tunnel/errors';
import type { ControlMessageInput, MessageOf } from '@tunnel/protocol';
import { owningLabel } from '@tunnel/rules/names';
import { type LeasedEndpoint, type Owner, sameEndpoint, type TunnelProtocol } from '@tunnel/rules/tunnels';
import { type Clock, randomId } from '@tunnel/runtime';
import type { Backend, TunnelAdmissionRequest } from '../backend/backend.ts';
import type { RequestedEndpoint } from '../backend/names/admission-request.ts';
import type { PublicAddress } from '../ingress/kinds.ts';
import type { PeerJoins } from '../ingress/p2p/peer-joins.ts';
import type { EndpointRecovery } from '../routing/endpoint-recovery.ts';
import type { EndpointRegistry } from '../routing/endpoints.ts';
import { type DecidedRequest, type Groups, isSameGroup } from '../routing/groups.ts';
import {
  decideRegistration,
  endpointOfLease,
  type RegistrationDecision,
  type WantedEndpoint,
  type WantedGroup,
  type WantedLease,
} from '../routing/registration.rules.ts';
import { isOperators, type Registry } from '../routing/registry.ts';
import type { PolicyHolder, PolicyKeeper } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { type TunnelGroup } from '../routing/tunnel-group.rules.ts';
import type { ControlConnection } from './control-connection.ts';
import { type Proposal, proposalsFor } from './endpoint-proposals.ts';
import { heldByField } from './name-holder.ts';
import { policyHashField, policyWarnings, type RegisteredPolicy, readPolicy } from './registered-policy.ts';
import { describeTunnel, type RegisteredRequest } from './registered-tunnel.ts';
import type { Session } from './session.ts';
import { findTunnel, type SessionTunnel } from './session-life.rules.ts';
import type { Sessions } from './sessions.ts';

export interface RegisterContext extends PublicAddress {
  readonly clock: Clock;
  readonly backend: Pick<Backend, 'admitTunnel' | 'admissionEnded'>;
  readonly sessions: Sessions;
  readonly endpoints: EndpointRegistry;
  readonly tunnels: Pick<Registry, 'at'>;
  readonly groups: Groups;
  readonly peers: PeerJoins;
  readonly policies: PolicyKeeper;
  /** Names of the operator's sign-in providers. */
  readonly loginProviders: readonly string[];
  readonly recovery?: EndpointRecovery | undefined;
  /** True if load balancing is on for this edge. */
  readonly loadBalancing: boolean;
  /** Tunnel protocols that the operator has turned off. */
  readonly switchedOff: readonly TunnelProtocol[];
  /** Label of the platform's host below the domain. Not available to tunnels. */
  readonly platformLabel?: string | null | undefined;
  /** Checks the alert URL of a group member. Returns a warning, or null. */
  readonly checkAlertUrl: (url: string, withinMs: number) => Promise<string | null>;
  readonly tunnelLimit: number;
  readonly isDraining: () => boolean;
}

type Request = MessageOf<'RegisterTunnel'>;

type Registration = RegisterContext & RegisteredRequest;

interface Registered {
  readonly tunnel: Tunnel;
  /** True if the registered tunnel started a new group. */
  readonly isFirst: boolean;
}

/** Registers a tunnel. Always sends a response on the connection. Registrations of a session run in order. */
export const registerTunnel = (
  context: RegisterContext,
  session: Session,
  connection: ControlConnection,
  request: Request,
): Promise<void> =>
  session.registrations.run(async () => {
    const { answers, tunnel } = await answerTo(context, session, connection, request);
    for (const answer of answers) connection.send(answer);
    // Sent after the response, because the client does not know the tunnel before.
    if (tunnel?.protocol === 'p2p') context.peers.publisherReady(tunnel.tunnelId);
  });

// ---- the answer ----

const answerTo = async (
  context: RegisterContext,
  session: Session,
  connection: ControlConnection,
  request: Request,
): Promise<{ readonly answers: readonly ControlMessageInput[]; readonly tunnel?: Tunnel }> => {
  try {
    if (context.isDraining()) throw new Fault('EDGE_SHUTTING_DOWN');
    const warnings = await warningsOf(context, session, request);
    const { registered, policy } = await openTunnel(context, session, connection, request);
    const { tunnel, isFirst } = registered;
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
      warnings: [
        ...warnings,
        ...portWarning(tunnel, request),
        ...certificateWarning(tunnel, context),
        ...policyWarnings(tunnel, policy),
      ],
      ...policyHashField(policy),
    };
    // The first member of a group with a port is notified that the port is open. Other members and tunnels without a group are not.
    if (!isFirst || tunnel.assignedPort === null || tunnel.group?.endpoint.kind !== 'port')
      return { answers: [answer], tunnel };
    const bound = { type: 'Registered', tunnel_id: tunnel.tunnelId, assigned_port: tunnel.assignedPort } as const;
    return { answers: [answer, bound], tunnel };
  } catch (error) {
    const fault = Fault.from(error);
    const holder = heldByField(context.tunnels, session.owner, fault);
    return { answers: [{ ...tunnelError(request.request_id, fault), ...holder }] };
  }
};

/** Warning for ignored group settings, so that the user does not wonder about missing members. */
const GROUPS_OFF = 'load balancing is off on this edge: this tunnel is served alone';

const warningsOf = async (
  { loadBalancing, checkAlertUrl, clock }: RegisterContext,
  session: Session,
  { group, group_key_hash, health_check }: Request,
): Promise<string[]> => {
  if (!loadBalancing) return group === undefined && group_key_hash === undefined ? [] : [GROUPS_OFF];
  const url = health_check?.alert_webhook;
  if (url === undefined) return [];
  if (group === undefined) return ['alert_webhook: no alerts are sent for a tunnel without a group'];
  const begunAt = clock.monotonic();
  const warning = await checkAlertUrl(url, session.alertLookupMs);
  session.alertLookupMs -= clock.monotonic() - begunAt;
  return warning === null ? [] : [warning];
};

const portWarning = ({ group, assignedPort }: Tunnel, { remote_port }: Request): string[] =>
  group?.endpoint.kind !== 'port' || remote_port === undefined || remote_port === assignedPort
    ? []
    : [`remote_port ${remote_port}: the group has port ${assignedPort} already`];

/** Warns if a tunnel gets http instead of https because its certificate is missing, so that the user learns about it before visitors do. */
const certificateWarning = ({ publicUrl }: Tunnel, { httpsPort }: RegisterContext): string[] =>
  publicUrl.startsWith('http://') && httpsPort() !== null
    ? [`no certificate for ${new URL(publicUrl).hostname} yet`]
    : [];

export const tunnelError = (requestId: string, fault: Fault, tunnelId?: string): ControlMessageInput => ({
  type: 'TunnelError',
  request_id: requestId,
  ...(tunnelId === undefined ? {} : { tunnel_id: tunnelId }),
  code: fault.code,
  message: fault.message,
  retryable: fault.retryable,
});

// ---- admission ----

const openTunnel = async (
  context: RegisterContext,
  session: Session,
  connection: ControlConnection,
  request: Request,
): Promise<{ readonly registered: Registered; readonly policy: RegisteredPolicy }> => {
  // A tunnel id of another session is ignored: the tunnel is new and gets a new id.
  let known = request.tunnel_id === undefined ? undefined : findTunnel(session.state, request.tunnel_id);
  const decision = admit(context, session, request, known);
  if (decision.kind === 'refused') throw decision.fault;
  const { wanted } = decision;
  // Admission of the registration has verified the protocol.
  const protocol = request.protocol as TunnelProtocol;
  // Read before any change, so that a rejected policy leaves the existing tunnel as it is.
  const before = known === undefined ? undefined : session.tunnels.get(known.tunnelId);
  const policy = readPolicy(
    request,
    protocol,
    context.loginProviders,
    { known, brought: before?.broughtPolicy },
    session.owner,
  );
  if (known !== undefined && (isOtherKind(before, protocol) || !isSameEndpoint(known, before, wanted, session.owner))) {
    // The tunnel joins or leaves a group, moves to another endpoint, or changes from or to tls. The existing tunnel is closed first,
    // because it may hold the requested name.
    context.sessions.endTunnel(session, known.tunnelId);
    known = undefined;
  }
  const admitted = { ...context, session, connection, request, protocol, policy };
  // A returning tunnel was admitted at the same endpoint before and needs no ownership check.
  const registered =
    known === undefined
      ? await openNew(admitted, wanted)
      : await assignEndpoint({ ...admitted, known, tunnelId: known.tunnelId }, wanted, false);
  if (registered === null) throw new Fault('INTERNAL', {}, { internal: 'no endpoint found' });
  return { registered, policy };
};

/** Opens a new tunnel: tries the proposals in turn, each with an ownership check followed by the lease. */
const openNew = async (
  admitted: Omit<Registration, 'known' | 'tunnelId'>,
  wanted: WantedEndpoint,
): Promise<Registered | null> => {
  const { backend, sessions, session, connection, endpoints } = admitted;
  const isJoining = (group: WantedGroup): boolean => admitted.groups.isJoining(joinOf(admitted, group, null));
  for (const proposal of proposalsFor(wanted, { propose: () => endpoints.names.propose(), isJoining })) {
    const registration = { ...admitted, known: undefined, tunnelId: randomId('tun') };
    const { tunnelId } = registration;
    try {
      refuseServed(registration, proposal.asked);
      const refusal = await backend.admitTunnel(backendQuestion(registration, wanted, proposal));
      if (refusal !== null) throw refusal;
      if (sessions.of(connection) !== session) throw new Fault('TUNNEL_CLOSED');
      const registered = await assignEndpoint(registration, proposal.wanted, proposal.joinsGroup === true);
      if (registered !== null) return registered;
    } catch (error) {
      if (!(error instanceof Fault) || !proposal.isOneOfMany(error)) throw error;
    } finally {
      backend.admissionEnded(tunnelId);
    }
  }
  return null;
};

/**
 * Rejects names in use at this edge before the backend is asked, because the backend would assign the name to the account. Names below a
 * name of the operator are reserved for the operator, who has no names in the backend.
 */
const refuseServed = ({ endpoints, tunnels, session }: Registration, asked: RequestedEndpoint | null): void => {
  if (asked === null || asked.label === null || asked.joinsGroup) return;
  if (asked.kind === 'p2p' && endpoints.peerNames.isServed({ kind: 'peer-name', name: asked.label, account: null })) {
    throw new Fault('TUNNEL_P2P_NAME_IN_USE', { name: asked.label });
  }
  if (asked.kind !== 'subdomain') return;
  const above = tunnels.at({ kind: 'name', name: owningLabel(asked.label) });
  const isBelowOperators = above !== undefined && isOperators(above) && session.owner.kind !== 'operator';
  if (!endpoints.names.isServed({ kind: 'name', name: asked.label }) && !isBelowOperators) return;
  // If a group is refused, the fault reveals nothing about the current user of the name.
  throw asked.groupKeyHash === null
    ? new Fault('TUNNEL_SUBDOMAIN_IN_USE', { subdomain: asked.label })
    : new Fault('GROUP_KEY_MISMATCH');
};

const admit = (
  context: RegisterContext,
  session: Session,
  request: Request,
  known: SessionTunnel | undefined,
): RegistrationDecision =>
  decideRegistration(request, {
    tunnelCount: session.tunnels.size,
    tunnelLimit: context.tunnelLimit,
    ports: context.endpoints.portRanges,
    heldEndpoint: known?.endpoint ?? null,
    loadBalancing: context.loadBalancing,
    capabilities: session.capabilities,
    switchedOff: context.switchedOff,
    domainNames: { toAscii: domainToASCII, operatorsHosts: [context.domain] },
    platformLabel: context.platformLabel ?? null,
    hasHttpsPort: context.httpsPort() !== null,
  });

const backendQuestion = (
  registration: Registration,
  wanted: WantedEndpoint,
  { asked: endpoint, domain }: Pick<Proposal, 'asked' | 'domain'>,
): TunnelAdmissionRequest => {
  const { session, request, protocol, tunnelId, clock } = registration;
  return {
    tunnelId,
    sessionId: session.sessionId,
    name: request.name,
    protocol,
    owner: session.owner,
    keyId: session.keyId,
    clientName: session.clientName,
    customSubdomain: isCustomName(wanted),
    endpoint,
    domain,
    at: clock.now(),
  };
};

/** Whether the tunnel's name was chosen by the user. Names of groups always are, because all members have to know the name. */
const isCustomName = (wanted: WantedEndpoint): boolean =>
  wanted.kind === 'group'
    ? wanted.wanted.endpoint.kind === 'name'
    : wanted.kind === 'name' && wanted.wanted.kind === 'exact';

// ---- the endpoint ----

/** Opens the endpoint and lists the tunnel. Returns null if the group to join has ended. */
const assignEndpoint = async (
  registration: Registration,
  wanted: WantedEndpoint,
  joinsOnly: boolean,
): Promise<Registered | null> => {
  if (wanted.kind === 'group') return joinGroup(registration, wanted.wanted, joinsOnly);
  const { session, tunnelId, policies } = registration;
  // The policy is stored before the endpoint opens: without memory for the policy nothing is opened, so no endpoint is ever open without
  // its policy.
  const policy = policies.hold(registration.policy, session.tunnels.get(tunnelId)?.policy);
  try {
    return await standAlone(registration, wanted, policy);
  } catch (error) {
    policies.release(policy);
    throw error;
  }
};

const standAlone = async (
  registration: Registration,
  wanted: WantedLease,
  policy: PolicyHolder,
): Promise<Registered> => {
  const { sessions, session, connection, known } = registration;
  // An endpoint that is still open stays open if only the session's connection changed.
  const isOpen = known?.kind === 'live' && known.endpoint.kind !== 'member';
  // A p2p name is opened again each time, because its secret may have changed.
  const stays = isOpen && wanted.kind !== 'peer-name' && isWanted(known.endpoint, wanted, session.owner);
  const endpoint = stays ? (known.endpoint as LeasedEndpoint) : await openEndpoint(registration, wanted);
  const tunnel = describeTunnel(registration, { endpoint, reachedAt: endpoint, group: null, policy });
  if (!sessions.list(session, connection, tunnel)) throw new Fault('TUNNEL_CLOSED');
  // Reserves a carrier for the tunnel's datagrams, so that bulk data never delays them.
  if (tunnel.protocol === 'udp') session.upstream.mux?.reserveForDatagrams();
  return { tunnel, isFirst: false };
};

const joinGroup = (registration: Registration, wanted: WantedGroup, joinsOnly: boolean): Promise<Registered | null> => {
  const { groups, sessions, session, connection, tunnelId } = registration;
  return groups.join({
    ...joinOf(registration, wanted, session.tunnels.get(tunnelId)?.group ?? null),
    joinsOnly,
    isCurrent: () => sessions.of(connection) === session,
    makeMember: (group) => {
      const endpoint = { kind: 'member', groupId: group.groupId } as const;
      return describeTunnel(registration, { endpoint, reachedAt: group.endpoint, group, policy: group.policy });
    },
    onJoined: (tunnel) => void sessions.list(session, connection, tunnel),
  });
};

const joinOf = (
  { session, policy }: Pick<Registration, 'session' | 'policy'>,
  wanted: WantedGroup,
  former: TunnelGroup<Tunnel> | null,
): DecidedRequest => ({ wanted, owner: session.owner, policy, former: policy.stamp.isReturning ? former : null });

/** Whether the tunnel changed from or to tls, which shares names with http but is listed and counted separately. */
const isOtherKind = (before: Tunnel | undefined, protocol: TunnelProtocol): boolean =>
  before !== undefined && (before.protocol === 'tls') !== (protocol === 'tls');

/** Returns whether the tunnel requests the same endpoint as before the disconnect. */
const isSameEndpoint = (
  known: SessionTunnel,
  before: Tunnel | undefined,
  wanted: WantedEndpoint,
  owner: Owner,
): boolean => {
  if ((known.endpoint.kind === 'member') !== (wanted.kind === 'group')) return false;
  if (wanted.kind === 'group') return before?.group != null && isSameGroup(before.group, wanted.wanted);
  return isWanted(known.endpoint as LeasedEndpoint, wanted, owner);
};

const isWanted = (endpoint: LeasedEndpoint, lease: WantedLease, owner: Owner): boolean => {
  const wanted = endpointOfLease(lease, owner);
  return wanted !== null && sameEndpoint(endpoint, wanted);
};

const openEndpoint = async (
  { endpoints, recovery, isDraining, tunnelId, session }: Registration,
  wanted: WantedLease,
): Promise<LeasedEndpoint> => {
  recovery?.claim(tunnelId, wanted, session.owner, session.secretHash);
  const endpoint = await endpoints.open(tunnelId, wanted, { owner: session.owner, groupKeyHash: null });
  if (!isDraining()) return endpoint;
  // The drain has closed all endpoints, but this endpoint was opened during the drain.
  endpoints.close(endpoint);
  endpoints.release(endpoint, tunnelId);
  throw new Fault('EDGE_SHUTTING_DOWN');
};
