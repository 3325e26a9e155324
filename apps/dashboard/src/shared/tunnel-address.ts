// Where a tunnel is reached, and whose it is, as lists and pages say it. Pure.
import type { ShownProtocol, TunnelLogEntry } from '@tunnel/contract';

export interface TunnelAddress {
  /** To show and to copy: a URL, `host:port`, or the name of a p2p tunnel. */
  readonly text: string;
  /** For a browser; null: it is no address for one. */
  readonly href: string | null;
}

type Addressed = Pick<TunnelLogEntry, 'protocol' | 'label' | 'public_url' | 'tunnel_id'>;

/** An edge of before tells the label alone. */
export const addressOf = ({ protocol, label, public_url: url = '', tunnel_id }: Addressed): TunnelAddress => {
  if (protocol === 'http' && /^https?:\/\//.test(url)) return { text: url, href: url };
  // What programs take: they know their protocol.
  const text = url.replace(/^[a-z0-9]+:\/\//, '');
  return { text: text || label || tunnel_id, href: null };
};

/** Of what no browser opens there may still be something to copy. */
export const hasAddress = ({ protocol, public_url }: Pick<TunnelLogEntry, 'protocol' | 'public_url'>): boolean =>
  protocol !== 'p2p' && public_url !== undefined;

/** "web on laptop": as far as it is known; empty: nothing is. */
export const originText = ({ name, client_name }: Pick<TunnelLogEntry, 'name' | 'client_name'>): string =>
  [name, client_name].filter((part) => part !== undefined && part !== '').join(' on ');

/** A protocol as its owner names it: TLS that the edge passes through unread is TCP to the API. */
export type TunnelKind = ShownProtocol | 'tls';

/** The scheme of the URL tells TLS from TCP. */
export const kindOf = ({ protocol, public_url }: Pick<TunnelLogEntry, 'protocol' | 'public_url'>): TunnelKind =>
  protocol === 'tcp' && public_url?.startsWith('tls://') === true ? 'tls' : protocol;

/** The spelling of a protocol on every page. */
export const protocolText = (protocol: TunnelKind): string => protocol.toUpperCase();
