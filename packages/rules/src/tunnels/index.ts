export { type HealthReport, MemberHealth, type ProbedHealth, type ProbeKind, ProbeStreak } from './health.ts';
export { isOperatorsTenant, maySee, type Owner, ownerKey, sameOwner, tenantKey } from './owner.ts';
export {
  endpointKey,
  endpointLabel,
  endpointOfHost,
  endpointOfProtocol,
  endpointsOfLabel,
  type HostEndpoint,
  type LeasedEndpoint,
  type PeerEndpoint,
  type PublicEndpoint,
  peerNameKey,
  sameEndpoint,
} from './public-endpoint.ts';
export {
  type GroupProtocol,
  isGroupProtocol,
  isTunnelProtocol,
  PORT_RANGE_KEYS,
  type Transport,
  TUNNEL_PROTOCOLS,
  type TunnelProtocol,
} from './tunnel-protocols.ts';
