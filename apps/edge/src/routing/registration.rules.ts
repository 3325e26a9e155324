// Decides whether a session may register a tunnel, and which endpoint it may ask the leases for. Says; never does.

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
 * enough to tell tunnels apart, and fits a line
 * @limit tunnels: Tunnel name, length | `TUNNEL_NAME_INVALID`
 */
const TUNNEL_NAME_MAX_CHARS = 100;

/** The fields of a registration that decide about it, as they are on the wire. */
export interface TunnelRequest extends GroupFields, P2pOfferFields {
  readonly name: string;
  readonly protocol: string;
  /** This port or none. */
  readonly remote_port?: number | undefined;
  /** This port when it is free. */
  readonly preferred_port?: number | undefined;
  /** This name or none. */
  readonly subdomain?: string | undefined;
  /** This name when it is free. */
  readonly preferred_subdomain?: string | undefined;
  /** A host of the owner's own in the place of a subdomain. */
  readonly domain?: string | undefined;
  /** What its service is told as Host. */
  readonly host_header?: string | undefined;
}

/** What can be leased to one tunnel. */
export type WantedLease =
  | { readonly kind: 'port'; readonly transport: Transport; readonly wanted: WantedPort }
  | { readonly kind: 'name'; readonly wanted: WantedName }
  | { readonly kind: 'domain'; readonly wanted: { readonly kind: 'exact'; readonly name: string } }
  /** This name or none: the other end has to know it. */
  | {
      readonly kind: 'peer-name';
      readonly wanted: { readonly kind: 'exact'; readonly name: string };
      readonly offer: P2pOffer;
    };

/** The endpoint that is asked for; null: any will do. `owner`: the account that asks, on which the meaning of a p2p name depends. */
export const endpointOfLease = (lease: WantedLease, owner: Owner): LeasedEndpoint | null => {
  if (lease.kind === 'peer-name') return peerEndpointOf(lease.offer, owner);
  if (lease.wanted.kind === 'any') return null;
  return lease.kind === 'port'
    ? { kind: 'port', transport: lease.transport, port: lease.wanted.port }
    : { kind: lease.kind, name: lease.wanted.name };
};

export type WantedEndpoint = WantedLease | { readonly kind: 'group'; readonly wanted: WantedGroup };

/** `endpoint` counts when the group does not exist yet. */
export interface WantedGroup {
  readonly protocol: GroupProtocol;
  readonly name: string;
  readonly keyHash: string;
  readonly endpoint:
    | Extract<WantedLease, { kind: 'port' }>
    | { readonly kind: 'name' | 'domain'; readonly name: string };
}

export interface RegistrationFacts {
  /** Tunnels the session has, those that are held for it included. */
  readonly tunnelCount: number;
  readonly tunnelLimit: number;
  readonly ports: Readonly<Record<Transport, { readonly from: number; readonly to: number }>>;
  /** The endpoint of the same tunnel before: a return, which never counts against the limit. */
  readonly heldEndpoint: PublicEndpoint | null;
  /** The kill switch. Off: what is said about groups and health is accepted and ignored. */
  readonly loadBalancing: boolean;
  /** What client and edge agreed on. */
  readonly capabilities: readonly string[];
  /** What an own domain must not be, and how its letters are read. */
  readonly domainNames: DomainNameFacts;
  /** Of the platform's host, where that is right below the domain: a reserved word more. */
  readonly platformLabel?: string | null;
  /** The edge has an https port, by which visitors of tls tunnels come. */
  readonly hasHttpsPort: boolean;
  /** Protocols that the operator has switched off. */
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

/** null: a valid name. */
export const problemOfName = (name: string): string | null => problemOfText(name, TUNNEL_NAME_MAX_CHARS);

const refuse = (fault: Fault): RegistrationDecision => ({ kind: 'refused', fault });
