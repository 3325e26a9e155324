// Whether somebody on the way could read what goes over a connection: what carries private keys is sent over no such one.
import { isLoopbackHost, plainAddress, type TrustedProxies } from '@tunnel/rules/net';

export interface LinkFacts {
  /** The other end of the connection. */
  readonly peer: string;
  /** The connection itself is TLS. */
  readonly isTls: boolean;
  /** X-Forwarded-For. */
  readonly forwardedFor: string | undefined;
  /** X-Forwarded-Proto. */
  readonly forwardedProto: string | undefined;
}

/**
 * TLS from end to end, or this machine alone. Who passes a request on says how it came: that it was in clear is believed of everybody, that it was not
 * of a proxy of ours and of this machine alone.
 */
export const isPrivateLink = (link: LinkFacts, proxies: Pick<TrustedProxies, 'trusts'>): boolean => {
  const peer = plainAddress(link.peer);
  const isHere = isLoopbackHost(peer);
  const isTrusted = proxies.trusts(peer);
  const stated = partsOf(link.forwardedProto);
  if (stated.some((protocol) => protocol !== 'https')) return false;
  if (stated.length > 0) return link.isTls || isHere || isTrusted;
  const hops = partsOf(link.forwardedFor);
  // Somebody passed it on, and does not say how it came: nobody knows, unless it never left this machine.
  if (hops.length > 0) return (link.isTls || isHere) && hops.every((hop) => isLoopbackHost(plainAddress(hop)));
  return isHere || (link.isTls && !isTrusted);
};

const partsOf = (header: string | undefined): readonly string[] =>
  (header ?? '')
    .split(',')
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== '');
