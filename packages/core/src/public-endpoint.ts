// Where a tunnel is reached: a port of its own, a name on the shared one, a name that peers ask for, or as a member the port or name of its group.
import { type Transport, TUNNEL_PROTOCOLS, type TunnelProtocol } from './tunnel-protocols.ts';

export type PublicEndpoint =
  | { readonly kind: 'port'; readonly transport: Transport; readonly port: number }
  | { readonly kind: 'name'; readonly name: string }
  /** Of a p2p tunnel: no visitor of the public comes by it, and it is another name than the same word as a subdomain. */
  | { readonly kind: 'peer-name'; readonly name: string }
  | { readonly kind: 'member'; readonly groupId: string };

/** What can be leased: a member has none of its own. */
export type LeasedEndpoint = Exclude<PublicEndpoint, { kind: 'member' }>;

export const sameEndpoint = (a: PublicEndpoint, b: PublicEndpoint): boolean => endpointKey(a) === endpointKey(b);

/** Distinct for distinct endpoints: a key for maps. */
export const endpointKey = (endpoint: PublicEndpoint): string => {
  switch (endpoint.kind) {
    case 'port':
      return `${endpoint.transport} ${endpoint.port}`;
    case 'name':
      return `name ${endpoint.name}`;
    case 'peer-name':
      return `peer-name ${endpoint.name}`;
    case 'member':
      return `member ${endpoint.groupId}`;
  }
};

/** What people call it: the name, or the port. Of a tls tunnel the whole host: it is shown as tcp, where a label alone would be read as a port. */
export const endpointLabel = (protocol: TunnelProtocol, endpoint: LeasedEndpoint, domain: string): string => {
  if (endpoint.kind === 'port') return String(endpoint.port);
  return protocol === 'tls' ? `${endpoint.name}.${domain}` : endpoint.name;
};

/** The way back: what a label stands for under a protocol as it is shown; null: it is no label. */
export const endpointOfLabel = (
  protocol: Exclude<TunnelProtocol, 'https' | 'tls'>,
  label: string,
  domain: string,
): LeasedEndpoint | null => {
  const { endpoint } = TUNNEL_PROTOCOLS[protocol];
  if (endpoint.kind !== 'port') return { kind: endpoint.kind, name: label };
  // To the letter: `020000` is no port's name.
  if (/^[1-9]\d{0,4}$/.test(label)) return { ...endpoint, port: Number(label) };
  const name = protocol === 'tcp' && label.endsWith(`.${domain}`) ? label.slice(0, -domain.length - 1) : '';
  return name === '' ? null : { kind: 'name', name };
};
