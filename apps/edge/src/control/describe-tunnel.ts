// What a registration and its endpoint make of a tunnel: the value that everyone else reads.
import {
  endpointLabel,
  type LeasedEndpoint,
  MemberHealth,
  type ProbeKind,
  type PublicEndpoint,
  type SessionTunnel,
  sameEndpoint,
  type TunnelGroup,
  type TunnelProtocol,
} from '@tunnel/core';
import type { MessageOf } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import { kindOf, type PublicAddress } from '../ingress/kinds.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { ControlConnection } from './control-connection.ts';
import type { Session } from './session.ts';

type Request = MessageOf<'RegisterTunnel'>;

export interface TunnelFacts extends PublicAddress {
  readonly clock: Clock;
  readonly loadBalancing: boolean;
  readonly session: Session;
  readonly connection: ControlConnection;
  readonly request: Request;
  readonly protocol: TunnelProtocol;
  /** The same tunnel before. */
  readonly known: SessionTunnel | undefined;
  readonly tunnelId: string;
  readonly endpoint: PublicEndpoint;
  /** Its own endpoint, or its group's. */
  readonly reachedAt: LeasedEndpoint;
  readonly group: TunnelGroup<Tunnel> | null;
}

export const describeTunnel = (facts: TunnelFacts): Tunnel => {
  const { tunnelId, session, request, protocol, reachedAt } = facts;
  const kind = kindOf(protocol);
  const label = endpointLabel(reachedAt);
  // The same tunnel as before its client was away: its counts and its beginning go on.
  const before = session.tunnels.get(tunnelId);
  return {
    tunnelId,
    sessionId: session.sessionId,
    name: request.name,
    protocol,
    endpoint: facts.endpoint,
    group: facts.group,
    label,
    publicUrl: kind.publicUrl(label, facts),
    assignedPort: reachedAt.kind === 'port' ? reachedAt.port : null,
    http: kind.httpSettings(request),
    clientAddr: facts.connection.peer.clientAddr,
    owner: session.owner,
    connectedSince: before?.connectedSince ?? facts.clock.now(),
    counters: before?.counters ?? { requests: 0, bytes: 0, openConnections: 0, pendingFailover: 0 },
    health: healthOf(facts, before),
    alertWebhook: (facts.loadBalancing ? request.health_check?.alert_webhook : null) ?? null,
    upstream: session.upstream,
  };
};

/** A session that only changed its connection keeps the bit until the next report; one that was away, or moves, begins anew. */
const healthOf = (facts: TunnelFacts, before: Tunnel | undefined): MemberHealth => {
  const { loadBalancing, request, known, clock, endpoint } = facts;
  const kind: ProbeKind | null = (loadBalancing ? request.health_check?.type : null) ?? null;
  if (before === undefined || before.health.kind !== kind) return new MemberHealth(kind);
  const stays = known?.kind === 'live' && sameEndpoint(known.endpoint, endpoint);
  if (!stays) before.health.returned(clock.now());
  return before.health;
};
