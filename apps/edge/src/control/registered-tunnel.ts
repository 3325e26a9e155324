// Builds the tunnel of a registration, once its public endpoint is known.

import type { MessageOf } from '@tunnel/protocol';
import {
  endpointLabel,
  endpointOfProtocol,
  type LeasedEndpoint,
  MemberHealth,
  type ProbeKind,
  type PublicEndpoint,
  sameEndpoint,
  type TunnelProtocol,
} from '@tunnel/rules/tunnels';
import type { Clock } from '@tunnel/runtime';
import { TunnelCounters } from '../backend/tunnel-counters.ts';
import { kindOf, type PublicAddress } from '../ingress/kinds.ts';
import type { PolicyHolder } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { type TunnelGroup } from '../routing/tunnel-group.rules.ts';
import type { ControlConnection } from './control-connection.ts';
import type { RegisteredPolicy } from './registered-policy.ts';
import type { Session } from './session.ts';
import { type SessionTunnel } from './session-life.rules.ts';

/** A tunnel's registration that passed admission. */
export interface RegisteredRequest extends PublicAddress {
  readonly clock: Clock;
  /** True if load balancing is on for this edge. */
  readonly loadBalancing: boolean;
  readonly session: Session;
  readonly connection: ControlConnection;
  readonly request: MessageOf<'RegisterTunnel'>;
  readonly protocol: TunnelProtocol;
  /** Earlier state of the same tunnel in its client's session. */
  readonly known: SessionTunnel | undefined;
  readonly tunnelId: string;
  readonly policy: RegisteredPolicy;
}

export interface AssignedEndpoint {
  readonly endpoint: PublicEndpoint;
  /** The tunnel's public endpoint, or the endpoint of its group. */
  readonly reachedAt: LeasedEndpoint;
  readonly group: TunnelGroup<Tunnel> | null;
  /** Holder of the tunnel's policy, or of the policy of its group. */
  readonly policy: PolicyHolder;
}

/** Builds the entry of a registered tunnel for the registry. */
export const describeTunnel = (registration: RegisteredRequest, assigned: AssignedEndpoint): Tunnel => {
  const { reachedAt, group, policy } = assigned;
  const { tunnelId, session, connection, request, protocol, clock, loadBalancing } = registration;
  const kind = kindOf(protocol);
  const endpoint = endpointOfProtocol(protocol, assigned.endpoint);
  const label = endpointLabel(protocol, reachedAt, registration.domain);
  // A tunnel that returns after a disconnect keeps its counters and its start time.
  const before = session.tunnels.get(tunnelId);
  return {
    tunnelId,
    sessionId: session.sessionId,
    name: request.name,
    protocol,
    endpoint,
    group,
    label,
    publicUrl: kind.publicUrl({ endpoint: reachedAt, label }, registration),
    assignedPort: reachedAt.kind === 'port' ? reachedAt.port : kind.sharedPort(registration),
    http: kind.httpSettings(request),
    flowIdleSecs: request.idle_secs ?? null,
    clientAddr: connection.peer.clientAddr,
    clientName: session.clientName,
    owner: session.owner,
    connectedSince: before?.connectedSince ?? clock.now(),
    counters: before?.counters ?? new TunnelCounters(),
    health: healthOf(registration, endpoint, before),
    alertWebhook: (loadBalancing ? request.health_check?.alert_webhook : null) ?? null,
    policy,
    broughtPolicy: registration.policy.stamp,
    proxyProtocol: request.proxy_protocol ?? null,
    upstream: session.upstream,
  };
};

/**
 * Returns the initial health. A tunnel keeps its health if only the connection changed; after a disconnect or a change of endpoint, health
 * starts from the default.
 */
const healthOf = (
  registration: RegisteredRequest,
  endpoint: PublicEndpoint,
  before: Tunnel | undefined,
): MemberHealth => {
  const { loadBalancing, request, known, clock } = registration;
  const kind: ProbeKind | null = (loadBalancing ? request.health_check?.type : null) ?? null;
  if (before === undefined || before.health.kind !== kind) return new MemberHealth(kind);
  const stays = known?.kind === 'live' && sameEndpoint(known.endpoint, endpoint);
  if (!stays) before.health.returned(clock.now());
  return before.health;
};
