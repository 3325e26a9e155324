// Which authorities (host and port, as the header Host has them) are a server's own. A page of somebody else whose name was made to point
// here (DNS rebinding) shows itself by that name: whoever answers to it lends that page the visitor's network.
import { isLoopbackHost } from '@tunnel/rules/net';

export interface OwnAuthorities {
  /** How people reach it. `port` is always given, that of the scheme where the URL has none. */
  readonly published: { readonly host: string; readonly port: number };
  /** The port that the scheme of the published URL has anyway. */
  readonly defaultPort: number;
  /** What it listens on. While that is loopback, so is everybody who calls it by a name of this machine. */
  readonly listensOn: string;
}

/** A name or an IPv4 address, or an IPv6 address in brackets; then a port. Nothing else: no user, no path, no space. */
const FORM = /^(\[[0-9a-f:.]{2,45}\]|[^\s:/?#@[\]\\]{1,255})(?::(\d{1,5}))?$/i;

/**
 * Names of this machine count with any port: a forwarded port (ssh -L, a container) has another number than ours, and a name that a
 * stranger could point here is none of them.
 */
export const ownAuthority = (own: OwnAuthorities): ((authority: string) => boolean) => {
  const published = { ...own.published, host: plainHost(own.published.host) };
  const atHome = isLoopbackHost(own.listensOn);
  return (authority) => {
    const [, given = '', port] = FORM.exec(authority) ?? [];
    if (given === '' || given.endsWith('..')) return false;
    const host = plainHost(given);
    if (atHome && isLoopbackHost(host)) return true;
    return host === published.host && (port === undefined ? own.defaultPort : Number(port)) === published.port;
  };
};

/** A dot at the end names the root of all names: the same host. */
const plainHost = (host: string): string => host.toLowerCase().replace(/\.$/, '');
