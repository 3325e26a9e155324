// Whose address a request is counted against: the peer's, or the one that a trusted proxy says it speaks for.
import ipaddr from 'ipaddr.js';

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** A dual-stack listener sees IPv4 peers as ::ffff:1.2.3.4; people, limits and local services mean 1.2.3.4. */
export const plainAddress = (address: string): string => MAPPED_IPV4.exec(address)?.[1] ?? address;

export type CallerAddress = (peer: string, forwardedFor: string | undefined) => string;

/** `trusted`: addresses and networks, as in `trusted_proxies` of server.toml. */
export const callerAddressOf = (trusted: readonly string[]): CallerAddress => {
  if (trusted.length === 0) return plainAddress;
  const networks = trusted.map((entry) => ipaddr.parseCIDR(entry.includes('/') ? entry : `${entry}/${bitsOf(entry)}`));
  const isTrusted = (text: string): boolean => {
    const address = ipaddr.parse(text);
    return networks.some((network) => network[0].kind() === address.kind() && address.match(network));
  };
  return (peer, forwardedFor) => {
    let address = plainAddress(peer);
    const hops = forwardedFor?.split(',') ?? [];
    // From the right: each entry was written by the hop after it, so it counts only while that hop is trusted.
    while (ipaddr.isValid(address) && isTrusted(address)) {
      const before = plainAddress(hops.pop()?.trim() ?? '');
      // Anything that is no address was not written by a proxy of ours.
      if (!ipaddr.isValid(before)) break;
      address = before;
    }
    return address;
  };
};

const bitsOf = (address: string): number => (ipaddr.parse(address).kind() === 'ipv4' ? 32 : 128);
