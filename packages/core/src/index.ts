export {
  type Admission,
  type AdmissionFacts,
  decideAdmission,
  type PlaceWish,
  problemOfName,
  TUNNEL_NAME_MAX_CHARACTERS,
  type TunnelRequest,
} from './admission.ts';
export { afterConnect, afterFailure, type BackoffRules, type BackoffState, CALM } from './backoff.ts';
export { ConnectionCounts, type ConnectionLimits, type ConnectionVerdict } from './connection-counts.ts';
export { type FailureRules, type FailureVerdict, FailureWindow } from './failure-window.ts';
export * from './http1/index.ts';
export { judgeLiveness, type LivenessFacts, type LivenessRules, type LivenessVerdict } from './liveness.ts';
export { generateName } from './names/generate-name.ts';
export { NameLeases, type NameUse, type NameWish } from './names/name-leases.ts';
export { foldSubdomain, problemOfSubdomain, RESERVED_SUBDOMAINS, SUBDOMAIN_MAX_CHARACTERS } from './names/subdomain.ts';
export { subdomainOf } from './names/subdomain-of-host.ts';
export { type Owner, sameOwner } from './owner.ts';
export { type Place, placeKey, samePlace } from './place.ts';
export { type LeaseAnswer, PortLeases, type PortUse, type PortWish } from './port-leases.ts';
export {
  findTunnel,
  type SessionEffect,
  type SessionEvent,
  type SessionRules,
  type SessionState,
  type SessionStep,
  type SessionTunnel,
  startSession,
  transitionSession,
} from './session-life.ts';
