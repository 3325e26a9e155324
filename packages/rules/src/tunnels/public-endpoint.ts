// Public endpoint of a tunnel: a port, a subdomain or custom domain on the shared port, a p2p name, or the endpoint of its group.
import { isOfDomain, subdomainOf } from '../names/names.ts';
import { type Transport, TUNNEL_PROTOCOLS, type TunnelProtocol } from './tunnel-protocols.ts';

export type PublicEndpoint =
  | { readonly kind: 'port'; readonly transport: Transport; readonly port: number }
  | HostEndpoint
  | PeerEndpoint
  | { readonly kind: 'member'; readonly groupId: string };

/** Endpoint found by the host in a visitor's request: a subdomain of the edge, or a custom domain. */
export interface HostEndpoint {
  readonly kind: 'name' | 'domain';
  /** Name of a tunnel's host: the labels before the edge's domain, or the whole host, including `*.`. */
  readonly name: string;
  /** True if the service terminates TLS. The edge must not terminate it, even while the client is disconnected. */
  readonly passesTls?: true;
}

/** Name of a p2p tunnel. Not reachable for public visitors, and independent of the same word as a subdomain. */
export interface PeerEndpoint {
  readonly kind: 'peer-name';
  readonly name: string;
  /**
   * Owner of the name; other accounts can use the same name. Null for the single tunnel of this name that keys of every account can connect
   * to.
   */
  readonly account: string | null;
}

/** Unique key per p2p name: `<account>/<name>`, or `<name>` if keys of every account can connect. Names contain no slash. */
export const peerNameKey = ({ name, account }: PeerEndpoint): string =>
  account === null ? name : `${account}/${name}`;

/** Public endpoints that can be leased. A group member has no separate endpoint. */
export type LeasedEndpoint = Exclude<PublicEndpoint, { kind: 'member' }>;

export const sameEndpoint = (a: PublicEndpoint, b: PublicEndpoint): boolean => endpointKey(a) === endpointKey(b);

/** Unique string key of a public endpoint, for maps. */
export const endpointKey = (endpoint: PublicEndpoint): string => {
  switch (endpoint.kind) {
    case 'port':
      return `${endpoint.transport} ${endpoint.port}`;
    case 'name':
    case 'domain':
      return `${endpoint.kind} ${endpoint.name}`;
    case 'peer-name':
      return `${endpoint.kind} ${peerNameKey(endpoint)}`;
    case 'member':
      return `member ${endpoint.groupId}`;
  }
};

/** Marks the public endpoint of a `tls` tunnel as TLS passthrough. */
export const endpointOfProtocol = <E extends PublicEndpoint>(protocol: TunnelProtocol, endpoint: E): E =>
  protocol === 'tls' && (endpoint.kind === 'name' || endpoint.kind === 'domain')
    ? { ...endpoint, passesTls: true }
    : endpoint;

/**
 * Label shown to people: the name, custom domain or port. For a tls tunnel the whole host, because it is shown as tcp, where a label would
 * look like a port.
 */
export const endpointLabel = (protocol: TunnelProtocol, endpoint: LeasedEndpoint, domain: string): string => {
  if (endpoint.kind === 'port') return String(endpoint.port);
  return protocol === 'tls' && endpoint.kind === 'name' ? `${endpoint.name}.${domain}` : endpoint.name;
};

/** Host name under which visitors reach the public endpoint. */
export const hostOfEndpoint = ({ kind, name }: HostEndpoint, domain: string): string =>
  kind === 'domain' ? name : `${name}.${domain}`;

/** Public endpoint that matches no tunnel and no wildcard. */
const NOBODYS: HostEndpoint = { kind: 'domain', name: '' };

/**
 * Returns the endpoint of a visitor's host. Custom domains are never at or below the edge's domain: hosts there are names or the edge
 * itself, and a tenant's wildcard for the parent domain does not match them. `host` is in lower case, without port; wildcards match
 * nothing.
 */
export const endpointOfHost = (host: string, domain: string): HostEndpoint => {
  const name = subdomainOf(host, domain);
  if (name !== null) return { kind: 'name', name };
  if (isOfDomain(host, domain) || host.startsWith('*')) return NOBODYS;
  return { kind: 'domain', name: host.endsWith('.') ? host.slice(0, -1) : host };
};

/** Inverse of endpointLabel: the endpoints that a label can mean for a displayed protocol. Empty for an invalid label. */
export const endpointsOfLabel = (
  protocol: Exclude<TunnelProtocol, 'https' | 'tls'>,
  label: string,
  domain: string,
): readonly LeasedEndpoint[] => {
  const { endpoint } = TUNNEL_PROTOCOLS[protocol];
  if (endpoint.kind === 'peer-name') return [{ kind: 'peer-name', name: label, account: null }];
  // `a.shop` can be a name below `shop` or a custom domain in the top-level domain `shop`.
  if (endpoint.kind === 'name') {
    return [
      { kind: 'name', name: label },
      { kind: 'domain', name: label },
    ];
  }
  // A port in a host name consists of exact digits: `020000` is no port.
  if (/^[1-9]\d{0,4}$/.test(label)) return [{ ...endpoint, port: Number(label) }];
  if (protocol !== 'tcp' || !label.includes('.')) return [];
  if (!isOfDomain(label, domain)) return [{ kind: 'domain', name: label }];
  const name = label.slice(0, -domain.length - 1);
  return name === '' ? [] : [{ kind: 'name', name }];
};
