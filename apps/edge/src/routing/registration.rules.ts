// Decides whether a session may register a tunnel, and which endpoint to lease. Has no side effects.

import type { DomainNameFacts } from '@tunnel/certificates/domains';
import { Fault } from '@tunnel/errors';
import { isHostHeader } from '@tunnel/http1';
import { foldSubdomain, problemOfSubdomain, problemOfText, shownText, type WantedPort } from '@tunnel/rules/names';
import {
  type GroupProtocol,
  isGroupProtocol,
  isTunnelProtocol,
  type LeasedEndpoint,
  type Owner,
  type PublicEndpoint,
  type Transport,
  TUNNEL_PROTOCOLS,
  type TunnelProtocol,
} from '@tunnel/rules/tunnels';
import {
  type GroupFields,
  groupSubdomain,
  type P2pOffer,
  type P2pOfferFields,
  parseP2pOffer,
  peerEndpointOf,
  refuseGroupFields,
  refuseGroupsOf,
} from '@tunnel/tunnel-spec';
import type { WantedName } from './name-leases.rules.ts';
import { refuseHostless, wantedDomain } from './own-domain.rules.ts';

/**
 * Maximum length of a tunnel name in characters: enough to distinguish tunnels, and short enough for a line.
 * @limit tunnels: Tunnel name, length | `TUNNEL_NAME_INVALID`
 */
const TUNNEL_NAME_MAX_CHARS = 100;

/** The fields of a registration that decide about the admission, as sent on the wire. */
export interface TunnelRequest extends GroupFields, P2pOfferFields {
  readonly name: string;
  readonly protocol: string;
  /** Required port: the registration fails if the port is not available. */
  readonly remote_port?: number | undefined;
  /** Preferred port, used if free. */
  readonly preferred_port?: number | undefined;
  /** Required subdomain: the registration fails if the subdomain is not available. */
  readonly subdomain?: string | undefined;
  /** Preferred subdomain, used if free. */
  readonly preferred_subdomain?: string | undefined;
  /** Custom domain of the owner, instead of a subdomain. */
  readonly domain?: string | undefined;
  /** Value of the Host header sent to the local service. */
  readonly host_header?: string | undefined;
}

/** An endpoint to lease for a single tunnel. */
export type WantedLease =
  | { readonly kind: 'port'; readonly transport: Transport; readonly wanted: WantedPort }
  | { readonly kind: 'name'; readonly wanted: WantedName }
  | { readonly kind: 'domain'; readonly wanted: { readonly kind: 'exact'; readonly name: string } }
  /** Exactly this peer name, because the subscriber must know the name. */
  | {
      readonly kind: 'peer-name';
      readonly wanted: { readonly kind: 'exact'; readonly name: string };
      readonly offer: P2pOffer;
    };

/**
 * Returns the requested endpoint, or null if any endpoint will do. `owner` is the requesting account, because a p2p name can be local to
 * its account.
 */
export const endpointOfLease = (lease: WantedLease, owner: Owner): LeasedEndpoint | null => {
  if (lease.kind === 'peer-name') return peerEndpointOf(lease.offer, owner);
  if (lease.wanted.kind === 'any') return null;
  return lease.kind === 'port'
    ? { kind: 'port', transport: lease.transport, port: lease.wanted.port }
    : { kind: lease.kind, name: lease.wanted.name };
};

export type WantedEndpoint = WantedLease | { readonly kind: 'group'; readonly wanted: WantedGroup };

/** The group that a registration wants to join or create. `endpoint` is used only if the group does not exist yet. */
export interface WantedGroup {
  readonly protocol: GroupProtocol;
  readonly name: string;
  readonly keyHash: string;
  readonly endpoint:
    | Extract<WantedLease, { kind: 'port' }>
    | { readonly kind: 'name' | 'domain'; readonly name: string };
}

export interface RegistrationFacts {
  /** Number of the session's tunnels, including tunnels that are held for the session. */
  readonly tunnelCount: number;
  readonly tunnelLimit: number;
  readonly ports: Readonly<Record<Transport, { readonly from: number; readonly to: number }>>;
  /** Previous endpoint of the same tunnel, or null. A returning tunnel never counts against the limit. */
  readonly heldEndpoint: PublicEndpoint | null;
  /** False if the operator has switched off load balancing. Fields about groups and health are then accepted and ignored. */
  readonly loadBalancing: boolean;
  /** Capabilities agreed on by client and edge. */
  readonly capabilities: readonly string[];
  /** Names that are not allowed as a custom domain, and how to normalize a domain name. */
  readonly domainNames: DomainNameFacts;
  /** Label of the platform's host if the host is directly below the edge's domain. No tunnel can have this subdomain. */
  readonly platformLabel?: string | null;
  /** True if the edge has an https port, on which visitors of tls tunnels connect. */
  readonly hasHttpsPort: boolean;
  /** Protocols switched off by the operator. */
  readonly switchedOff: readonly TunnelProtocol[];
}

export type RegistrationDecision =
  | { readonly kind: 'admitted'; readonly wanted: WantedEndpoint }
  | { readonly kind: 'refused'; readonly fault: Fault };

export const decideRegistration = (request: TunnelRequest, facts: RegistrationFacts): RegistrationDecision => {
  const nameProblem = problemOfName(request.name);
  if (nameProblem !== null) {
    return refuse(new Fault('TUNNEL_NAME_INVALID', { name: shownText(request.name), reason: nameProblem }));
  }
  const { protocol } = request;
  if (!isTunnelProtocol(protocol) || !isAgreedOn(protocol, facts)) {
    const supported = Object.keys(TUNNEL_PROTOCOLS).join(', ');
    return refuse(new Fault('TUNNEL_PROTOCOL_UNSUPPORTED', { protocol, supported }));
  }
  if (facts.switchedOff.includes(protocol)) return refuse(new Fault('TUNNEL_PROTOCOL_OFF', { protocol }));
  const { host_header } = request;
  if (host_header !== undefined && !isHostHeader(host_header)) {
    return refuse(new Fault('TUNNEL_HOST_HEADER_INVALID', { host_header: shownText(host_header) }));
  }
  const domain = wantedDomain(protocol, request, facts.domainNames);
  if (domain instanceof Fault) return refuse(domain);
  if (protocol === 'tls' && !facts.hasHttpsPort) return refuse(new Fault('TUNNEL_TLS_UNAVAILABLE'));
  const placed = endpointFor(protocol, domain, request, facts);
  if (placed.kind === 'refused') return placed;
  if (facts.heldEndpoint === null && facts.tunnelCount >= facts.tunnelLimit) {
    return refuse(new Fault('TUNNEL_LIMIT', { limit: facts.tunnelLimit }));
  }
  return placed;
};

const isAgreedOn = (protocol: TunnelProtocol, { capabilities }: RegistrationFacts): boolean => {
  const { capability } = TUNNEL_PROTOCOLS[protocol];
  return capability === null || capabilities.includes(capability);
};

const endpointFor = (
  protocol: TunnelProtocol,
  domain: string | null,
  request: TunnelRequest,
  facts: RegistrationFacts,
): RegistrationDecision => {
  const { group, group_key_hash } = request;
  const oddity = facts.loadBalancing ? (refuseGroupsOf(protocol, request) ?? refuseGroupFields(request)) : null;
  if (oddity !== null) return refuse(oddity);
  const { endpoint } = TUNNEL_PROTOCOLS[protocol];
  const isGrouped = facts.loadBalancing && group !== undefined && group_key_hash !== undefined;
  if (!isGrouped || !isGroupProtocol(protocol)) {
    if (endpoint.kind === 'port') return portFor(endpoint.transport, request, facts);
    if (endpoint.kind === 'peer-name') return peerNameFor(request);
    if (domain !== null) {
      return { kind: 'admitted', wanted: { kind: 'domain', wanted: { kind: 'exact', name: domain } } };
    }
    if (protocol === 'tls' && request.subdomain === undefined) return refuse(refuseHostless());
    return nameFor(request, facts);
  }
  const named = { protocol, name: group, keyHash: group_key_hash };
  if (endpoint.kind === 'port') {
    const placed = portFor(endpoint.transport, request, facts);
    if (placed.kind === 'refused' || placed.wanted.kind !== 'port') return placed;
    return { kind: 'admitted', wanted: { kind: 'group', wanted: { ...named, endpoint: placed.wanted } } };
  }
  const subdomain = domain === null ? groupSubdomain(group, request.subdomain, facts.platformLabel) : null;
  if (subdomain instanceof Fault) return refuse(subdomain);
  const at =
    domain === null ? { kind: 'name' as const, name: subdomain ?? '' } : { kind: 'domain' as const, name: domain };
  return { kind: 'admitted', wanted: { kind: 'group', wanted: { ...named, endpoint: at } } };
};

const portFor = (
  transport: Transport,
  { remote_port, preferred_port }: TunnelRequest,
  { ports, heldEndpoint }: RegistrationFacts,
): RegistrationDecision => {
  const range = ports[transport];
  const admit = (wanted: WantedPort): RegistrationDecision => ({
    kind: 'admitted',
    wanted: { kind: 'port', transport, wanted },
  });
  if (remote_port !== undefined && (remote_port < range.from || remote_port > range.to)) {
    return refuse(new Fault('TUNNEL_PORT_OUT_OF_RANGE', { port: remote_port, ...range }));
  }
  if (remote_port !== undefined) return admit({ kind: 'exact', port: remote_port });
  const isHeld = heldEndpoint?.kind === 'port' && heldEndpoint.transport === transport;
  const preferred = isHeld ? heldEndpoint.port : preferred_port;
  return admit(preferred === undefined ? { kind: 'any' } : { kind: 'preferred', port: preferred });
};

const nameFor = (
  { subdomain, preferred_subdomain }: TunnelRequest,
  { heldEndpoint, platformLabel }: RegistrationFacts,
): RegistrationDecision => {
  if (subdomain !== undefined) {
    const reason = problemOfSubdomain(subdomain, platformLabel);
    if (reason !== null)
      return refuse(new Fault('TUNNEL_SUBDOMAIN_INVALID', { subdomain: shownText(subdomain), reason }));
    return admitName({ kind: 'exact', name: foldSubdomain(subdomain) });
  }
  const preferred = heldEndpoint?.kind === 'name' ? heldEndpoint.name : preferred_subdomain;
  const isUsable = preferred !== undefined && problemOfSubdomain(preferred, platformLabel) === null;
  return admitName(isUsable ? { kind: 'preferred', name: foldSubdomain(preferred) } : { kind: 'any' });
};

const peerNameFor = (request: TunnelRequest): RegistrationDecision => {
  const offer = parseP2pOffer(request);
  if (offer instanceof Fault) return refuse(offer);
  return {
    kind: 'admitted',
    wanted: { kind: 'peer-name', wanted: { kind: 'exact', name: offer.name }, offer },
  };
};

const admitName = (wanted: WantedName): RegistrationDecision => ({
  kind: 'admitted',
  wanted: { kind: 'name', wanted },
});

/** Returns the problem with a tunnel name, or null if the name is valid. */
export const problemOfName = (name: string): string | null => problemOfText(name, TUNNEL_NAME_MAX_CHARS);

const refuse = (fault: Fault): RegistrationDecision => ({ kind: 'refused', fault });
