// Rules for the authorities (host and port, as in the Host header) that belong to a server. In a DNS rebinding attack, the name of a
// foreign page is made to point to this server, and the page sends its own name as Host. A server that answers under any name would give
// the page access to the visitor's network.
import { isLoopbackHost } from '@tunnel/rules/net';

export interface OwnAuthorities {
  /** Host and port of the public URL. `port` is always set, to the scheme's default if the URL has no port. */
  readonly published: { readonly host: string; readonly port: number };
  /** Default port of the public URL's scheme. */
  readonly defaultPort: number;
  /** Address on which the server listens. On a loopback address, every caller that uses a name of this machine is local. */
  readonly listensOn: string;
}

/** Format of an authority: a name, an IPv4 address, or an IPv6 address in brackets, then an optional port. No user, path or space. */
const FORM = /^(\[[0-9a-f:.]{2,45}\]|[^\s:/?#@[\]\\]{1,255})(?::(\d{1,5}))?$/i;

/**
 * Creates a check of whether an authority belongs to this server. Loopback names are accepted with any port: a forwarded port (ssh -L, a
 * container) differs from the server's port, and no attacker can make a loopback name point elsewhere.
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

/** Normalizes a host name. A trailing dot stands for the DNS root and means the same host. */
const plainHost = (host: string): string => host.toLowerCase().replace(/\.$/, '');
