export { type GroupFields, groupSubdomain, refuseGroupFields, refuseGroupsOf } from './group-request.ts';
export { type HealthReport, MemberHealth, type ProbedHealth, type ProbeKind, ProbeStreak } from './health.ts';
export { isOperatorsTenant, maySee, type Owner, ownerKey, sameOwner, tenantKey } from './owner.ts';
export {
  type P2pAudience,
  type P2pOffer,
  type P2pOfferFields,
  type P2pService,
  p2pNameOf,
  p2pOfferOf,
  peerEndpointOf,
  refuseP2pSecret,
} from './p2p-offer.ts';
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
