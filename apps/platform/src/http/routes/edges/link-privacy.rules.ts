// Rules for whether a connection is private, so that no third party can read it. Private keys are only sent over private connections.
import { isLoopbackHost, plainAddress, type TrustedProxies } from '@tunnel/rules/net';

export interface LinkFacts {
  /** Address of the other end of the connection. */
  readonly peer: string;
  /** True if the connection itself uses TLS. */
  readonly isTls: boolean;
  /** Value of the X-Forwarded-For header. */
  readonly forwardedFor: string | undefined;
  /** Value of the X-Forwarded-Proto header. */
  readonly forwardedProto: string | undefined;
}

/**
 * Returns true for TLS from end to end, or for a connection within this machine. A proxy can state the protocol of the original request.
 * A stated `http` is believed from every peer; a stated `https` only over TLS, from this machine, or from a trusted proxy.
 */
export const isPrivateLink = (link: LinkFacts, proxies: Pick<TrustedProxies, 'trusts'>): boolean => {
  const peer = plainAddress(link.peer);
  const isHere = isLoopbackHost(peer);
  const isTrusted = proxies.trusts(peer);
  const stated = partsOf(link.forwardedProto);
  if (stated.some((protocol) => protocol !== 'https')) return false;
  if (stated.length > 0) return link.isTls || isHere || isTrusted;
  const hops = partsOf(link.forwardedFor);
  // A proxy forwarded the request without stating the protocol. The link is private only if the request never left this machine.
  if (hops.length > 0) return (link.isTls || isHere) && hops.every((hop) => isLoopbackHost(plainAddress(hop)));
  return isHere || (link.isTls && !isTrusted);
};

const partsOf = (header: string | undefined): readonly string[] =>
  (header ?? '')
    .split(',')
    .map((part) => part.trim().toLowerCase())
    .filter((part) => part !== '');
