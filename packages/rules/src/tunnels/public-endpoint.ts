// Where a tunnel is reached: a port of its own, a name or an own domain on the shared one, a name that peers ask for, or as a member what its group has.
import { isOfDomain, subdomainOf } from '../names/names.ts';
import { type Transport, TUNNEL_PROTOCOLS, type TunnelProtocol } from './tunnel-protocols.ts';

export type PublicEndpoint =
  | { readonly kind: 'port'; readonly transport: Transport; readonly port: number }
  | HostEndpoint
  | PeerEndpoint
  | { readonly kind: 'member'; readonly groupId: string };

/** Found by the host that a visitor names: a subdomain of the edge, or a host of its owner's own. */
export interface HostEndpoint {
  readonly kind: 'name' | 'domain';
  /** The labels before the edge's domain, or the whole host; with its `*.`. */
  readonly name: string;
  /** TLS for it ends at its service: also while its client is away, nobody else may end it. */
  readonly passesTls?: true;
}

/** Name of a p2p tunnel. No visitor of the public comes by it, and it is a different name than the same word as a subdomain. */
export interface PeerEndpoint {
  readonly kind: 'peer-name';
  readonly name: string;
  /** The account whose name it is: other accounts can use the same name. null: the one tunnel of this name that keys of every account can connect to. */
  readonly account: string | null;
}

/** Distinct for distinct p2p names: `<account>/<name>`, or `<name>` where keys of every account can connect. Names contain no slash. */
export const peerNameKey = ({ name, account }: PeerEndpoint): string =>
  account === null ? name : `${account}/${name}`;

/** What can be leased: a member has none of its own. */
export type LeasedEndpoint = Exclude<PublicEndpoint, { kind: 'member' }>;

export const sameEndpoint = (a: PublicEndpoint, b: PublicEndpoint): boolean => endpointKey(a) === endpointKey(b);

/** Distinct for distinct endpoints: a key for maps. */
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

/** As a tunnel of this protocol has it. */
export const endpointOfProtocol = <E extends PublicEndpoint>(protocol: TunnelProtocol, endpoint: E): E =>
  protocol === 'tls' && (endpoint.kind === 'name' || endpoint.kind === 'domain')
    ? { ...endpoint, passesTls: true }
    : endpoint;

/** What people call it: the name, the own domain, or the port. Of a tls tunnel the whole host: it is shown as tcp, where a label alone would be read as a port. */
export const endpointLabel = (protocol: TunnelProtocol, endpoint: LeasedEndpoint, domain: string): string => {
  if (endpoint.kind === 'port') return String(endpoint.port);
  return protocol === 'tls' && endpoint.kind === 'name' ? `${endpoint.name}.${domain}` : endpoint.name;
};

/** The host that its visitors name. */
export const hostOfEndpoint = ({ kind, name }: HostEndpoint, domain: string): string =>
  kind === 'domain' ? name : `${name}.${domain}`;

/** No tunnel has it, and no wildcard is over it. */
const NOBODYS: HostEndpoint = { kind: 'domain', name: '' };

/**
 * Which endpoint visitors of a host mean. No own domain is at or below the edge's: what is there is a name, or the edge itself, which somebody's wildcard
 * over its parent does not get. `host` in lower case, without a port; one that is a wildcard is nobody's host.
 */
export const endpointOfHost = (host: string, domain: string): HostEndpoint => {
  const name = subdomainOf(host, domain);
  if (name !== null) return { kind: 'name', name };
  if (isOfDomain(host, domain) || host.startsWith('*')) return NOBODYS;
  return { kind: 'domain', name: host.endsWith('.') ? host.slice(0, -1) : host };
};

/** The way back: what a label may stand for under a protocol as it is shown; empty: it is no label. */
export const endpointsOfLabel = (
  protocol: Exclude<TunnelProtocol, 'https' | 'tls'>,
  label: string,
  domain: string,
): readonly LeasedEndpoint[] => {
  const { endpoint } = TUNNEL_PROTOCOLS[protocol];
  if (endpoint.kind === 'peer-name') return [{ kind: 'peer-name', name: label, account: null }];
  // `a.shop` is one below the name `shop`, and one of the top-level domain of that name.
  if (endpoint.kind === 'name') {
    return [
      { kind: 'name', name: label },
      { kind: 'domain', name: label },
    ];
  }
  // To the letter: `020000` is no port's name.
  if (/^[1-9]\d{0,4}$/.test(label)) return [{ ...endpoint, port: Number(label) }];
  if (protocol !== 'tcp' || !label.includes('.')) return [];
  if (!isOfDomain(label, domain)) return [{ kind: 'domain', name: label }];
  const name = label.slice(0, -domain.length - 1);
  return name === '' ? [] : [{ kind: 'name', name }];
};
