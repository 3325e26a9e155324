// Decides whether a session may register a tunnel, and which endpoint it may ask the leases for. Says; never does.
import { Fault } from '@tunnel/errors';
import { type GroupFields, groupSubdomain, isGroupProtocol, refuseGroupFields } from './groups/group-request.ts';
import type { GroupProtocol } from './groups/tunnel-group.ts';
import { CORE_LIMITS } from './limits.ts';
import type { WantedName } from './name-leases.ts';
import { foldSubdomain, problemOfSubdomain, problemOfText, shownText } from './names.ts';
import type { WantedPort } from './port-leases.ts';
import type { PublicEndpoint } from './public-endpoint.ts';

export interface TunnelRequest extends GroupFields {
  readonly name: string;
  readonly protocol: string;
  /** This port or none. */
  readonly remotePort?: number | undefined;
  /** This port when it is free. */
  readonly preferredPort?: number | undefined;
  /** This name or none. */
  readonly subdomain?: string | undefined;
  /** This name when it is free. */
  readonly preferredSubdomain?: string | undefined;
}

export type WantedEndpoint =
  | { readonly kind: 'port'; readonly wanted: WantedPort }
  | { readonly kind: 'name'; readonly wanted: WantedName }
  | { readonly kind: 'group'; readonly wanted: WantedGroup };

/** `endpoint` counts when the group does not exist yet. */
export interface WantedGroup {
  readonly protocol: GroupProtocol;
  readonly name: string;
  readonly keyHash: string;
  readonly endpoint:
    | { readonly kind: 'port'; readonly wanted: WantedPort }
    | { readonly kind: 'name'; readonly name: string };
}

export interface AdmissionFacts {
  /** Tunnels the session has, those that are held for it included. */
  readonly tunnelCount: number;
  readonly tunnelLimit: number;
  readonly protocols: readonly string[];
  readonly ports: { readonly from: number; readonly to: number };
  /** The endpoint of the same tunnel before: a return, which never counts against the limit. */
  readonly heldEndpoint: PublicEndpoint | null;
  /** The kill switch. Off: what is said about groups and health is accepted and ignored. */
  readonly loadBalancing: boolean;
}

export type Admission =
  | { readonly kind: 'admitted'; readonly wanted: WantedEndpoint }
  | { readonly kind: 'refused'; readonly fault: Fault };

export const decideAdmission = (request: TunnelRequest, facts: AdmissionFacts): Admission => {
  const nameProblem = problemOfName(request.name);
  if (nameProblem !== null) {
    return refuse(new Fault('TUNNEL_NAME_INVALID', { name: shownText(request.name), reason: nameProblem }));
  }
  if (!facts.protocols.includes(request.protocol)) {
    const supported = facts.protocols.join(', ');
    return refuse(new Fault('TUNNEL_PROTOCOL_UNSUPPORTED', { protocol: request.protocol, supported }));
  }
  const placed = endpointFor(request, facts);
  if (placed.kind === 'refused') return placed;
  if (facts.heldEndpoint === null && facts.tunnelCount >= facts.tunnelLimit) {
    return refuse(new Fault('TUNNEL_LIMIT', { limit: facts.tunnelLimit }));
  }
  return placed;
};

const endpointFor = (request: TunnelRequest, facts: AdmissionFacts): Admission => {
  const { group, groupKeyHash, protocol } = request;
  const oddity = facts.loadBalancing ? refuseGroupFields(request) : null;
  if (oddity !== null) return refuse(oddity);
  const isGrouped = facts.loadBalancing && group !== undefined && groupKeyHash !== undefined;
  if (!isGrouped || !isGroupProtocol(protocol)) {
    return protocol === 'tcp' ? portFor(request, facts) : nameFor(request, facts);
  }
  const named = { protocol, name: group, keyHash: groupKeyHash };
  if (protocol === 'tcp') {
    const placed = portFor(request, facts);
    if (placed.kind === 'refused' || placed.wanted.kind !== 'port') return placed;
    return { kind: 'admitted', wanted: { kind: 'group', wanted: { ...named, endpoint: placed.wanted } } };
  }
  const subdomain = groupSubdomain(group, request.subdomain);
  if (subdomain instanceof Fault) return refuse(subdomain);
  return {
    kind: 'admitted',
    wanted: { kind: 'group', wanted: { ...named, endpoint: { kind: 'name', name: subdomain } } },
  };
};

const portFor = ({ remotePort, preferredPort }: TunnelRequest, { ports, heldEndpoint }: AdmissionFacts): Admission => {
  if (remotePort !== undefined && (remotePort < ports.from || remotePort > ports.to)) {
    return refuse(new Fault('TUNNEL_PORT_OUT_OF_RANGE', { port: remotePort, ...ports }));
  }
  if (remotePort !== undefined) return admitPort({ kind: 'exact', port: remotePort });
  const preferred = heldEndpoint?.kind === 'port' ? heldEndpoint.port : preferredPort;
  return admitPort(preferred === undefined ? { kind: 'any' } : { kind: 'preferred', port: preferred });
};

const nameFor = ({ subdomain, preferredSubdomain }: TunnelRequest, { heldEndpoint }: AdmissionFacts): Admission => {
  if (subdomain !== undefined) {
    const reason = problemOfSubdomain(subdomain);
    if (reason !== null)
      return refuse(new Fault('TUNNEL_SUBDOMAIN_INVALID', { subdomain: shownText(subdomain), reason }));
    return admitName({ kind: 'exact', name: foldSubdomain(subdomain) });
  }
  const preferred = heldEndpoint?.kind === 'name' ? heldEndpoint.name : preferredSubdomain;
  const isUsable = preferred !== undefined && problemOfSubdomain(preferred) === null;
  return admitName(isUsable ? { kind: 'preferred', name: foldSubdomain(preferred) } : { kind: 'any' });
};

const admitPort = (wanted: WantedPort): Admission => ({ kind: 'admitted', wanted: { kind: 'port', wanted } });
const admitName = (wanted: WantedName): Admission => ({ kind: 'admitted', wanted: { kind: 'name', wanted } });

/** null: a valid name. */
export const problemOfName = (name: string): string | null => problemOfText(name, CORE_LIMITS.TUNNEL_NAME_MAX_CHARS);

const refuse = (fault: Fault): Admission => ({ kind: 'refused', fault });
