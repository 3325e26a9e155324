// Addresses, origins and protocols of tunnels as lists and pages show them. Pure functions.
import type { ShownProtocol, TunnelLogEntry } from '@tunnel/contract';

export interface TunnelAddress {
  /** Address to show and copy: a URL, `host:port`, or the name of a p2p tunnel. */
  readonly text: string;
  /** URL for a browser. Null if browsers cannot open the address. */
  readonly href: string | null;
}

type Addressed = Pick<TunnelLogEntry, 'protocol' | 'label' | 'public_url' | 'tunnel_id'>;

/** Returns the address of a tunnel. Older edges report only the label, without a public URL. */
export const addressOf = ({ protocol, label, public_url: url = '', tunnel_id }: Addressed): TunnelAddress => {
  if (protocol === 'http' && /^https?:\/\//.test(url)) return { text: url, href: url };
  // The scheme is removed, because programs that connect over TCP or UDP expect `host:port`.
  const text = url.replace(/^[a-z0-9]+:\/\//, '');
  return { text: text || label || tunnel_id, href: null };
};

/** Returns whether a tunnel has an address to copy, even if browsers cannot open the address. */
export const hasAddress = ({ protocol, public_url }: Pick<TunnelLogEntry, 'protocol' | 'public_url'>): boolean =>
  protocol !== 'p2p' && public_url !== undefined;

/** Returns the tunnel's origin, as in "web on laptop". Unknown parts are left out; empty if both parts are unknown. */
export const originText = ({ name, client_name }: Pick<TunnelLogEntry, 'name' | 'client_name'>): string =>
  [name, client_name].filter((part) => part !== undefined && part !== '').join(' on ');

/**
 * Protocol of a tunnel as its owner knows it. In the API, a TLS tunnel is a TCP tunnel, because the edge passes the encrypted
 * traffic through.
 */
export type TunnelKind = ShownProtocol | 'tls';

/** Returns the protocol to show. The scheme of the public URL distinguishes TLS from TCP. */
export const kindOf = ({ protocol, public_url }: Pick<TunnelLogEntry, 'protocol' | 'public_url'>): TunnelKind =>
  protocol === 'tcp' && public_url?.startsWith('tls://') === true ? 'tls' : protocol;

/** Returns the spelling of a protocol used on all pages: upper case. */
export const protocolText = (protocol: TunnelKind): string => protocol.toUpperCase();
