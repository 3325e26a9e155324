// What a registration and its endpoint make of a tunnel: the value that everyone else reads.
import {
  type LeasedEndpoint,
  MemberHealth,
  type ProbeKind,
  type PublicEndpoint,
  type SessionTunnel,
  sameEndpoint,
  type TunnelGroup,
} from '@tunnel/core';
import type { MessageOf } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import { TunnelCounters } from '../backend/tunnel-counters.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import type { HttpSettings } from '../upstream/upstream-request.ts';
import type { ControlConnection } from './control-connection.ts';
import { httpUrl, type PublicHttp, tcpUrl } from './public-url.ts';
import type { Session } from './session.ts';

type Request = MessageOf<'RegisterTunnel'>;

export interface TunnelFacts {
  readonly clock: Clock;
  readonly domain: string;
  readonly publicHttp: PublicHttp;
  readonly loadBalancing: boolean;
  readonly session: Session;
  readonly connection: ControlConnection;
  readonly request: Request;
  /** The same tunnel before. */
  readonly known: SessionTunnel | undefined;
  readonly tunnelId: string;
  readonly endpoint: PublicEndpoint;
  /** Its own endpoint, or its group's. */
  readonly reachedAt: LeasedEndpoint;
  readonly group: TunnelGroup<Tunnel> | null;
}

export const describeTunnel = (facts: TunnelFacts): Tunnel => {
  const { tunnelId, session, request, reachedAt, domain, publicHttp } = facts;
  // The same tunnel as before its client was away: its counts and its beginning go on.
  const before = session.tunnels.get(tunnelId);
  const isPort = reachedAt.kind === 'port';
  return {
    tunnelId,
    sessionId: session.sessionId,
    name: request.name,
    // Admission let only these pass.
    protocol: request.protocol as Tunnel['protocol'],
    endpoint: facts.endpoint,
    group: facts.group,
    label: isPort ? String(reachedAt.port) : reachedAt.name,
    publicUrl: isPort ? tcpUrl(domain, reachedAt.port) : httpUrl(publicHttp, reachedAt.name, domain),
    assignedPort: isPort ? reachedAt.port : null,
    http: isPort ? null : httpSettings(request),
    clientAddr: facts.connection.peer.clientAddr,
    owner: session.owner,
    connectedSince: before?.connectedSince ?? facts.clock.now(),
    counters: before?.counters ?? new TunnelCounters(),
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
