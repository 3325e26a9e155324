// What a registration and its place make of a tunnel: the value that everyone else reads.
import {
  MemberHealth,
  type OwnPlace,
  type Place,
  type ProbeKind,
  type SessionTunnel,
  samePlace,
  type TunnelGroup,
} from '@tunnel/core';
import type { MessageOf } from '@tunnel/protocol';
import type { Clock } from '@tunnel/runtime';
import type { HttpSettings, Tunnel } from '../pool/tunnel.ts';
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
  readonly place: Place;
  /** Its own place, or its group's. */
  readonly reachedAt: OwnPlace;
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
    place: facts.place,
    group: facts.group,
    label: isPort ? String(reachedAt.port) : reachedAt.name,
    publicUrl: isPort ? tcpUrl(domain, reachedAt.port) : httpUrl(publicHttp, reachedAt.name, domain),
    assignedPort: isPort ? reachedAt.port : null,
    http: isPort ? null : httpSettings(request),
    clientAddr: facts.connection.peer.clientAddr,
    owner: session.owner,
    connectedSince: before?.connectedSince ?? facts.clock.now(),
    counters: before?.counters ?? { requests: 0, bytes: 0, openConnections: 0, undecided: 0 },
    health: healthOf(facts, before),
    alertWebhook: (facts.loadBalancing ? request.health_check?.alert_webhook : null) ?? null,
    session,
  };
};

/** A session that only changed its connection keeps the bit until the next report; one that was away, or moves, begins anew. */
const healthOf = (facts: TunnelFacts, before: Tunnel | undefined): MemberHealth => {
  const { loadBalancing, request, known, clock, place } = facts;
  const kind: ProbeKind | null = (loadBalancing ? request.health_check?.type : null) ?? null;
  if (before === undefined || before.health.kind !== kind) return new MemberHealth(kind);
  const stays = known?.kind === 'live' && samePlace(known.place, place);
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
