// Whose address a request is counted against: the peer's, or the one that a trusted proxy says it speaks for.
import { BlockList, isIP, isIPv6 } from 'node:net';

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** A dual-stack listener sees IPv4 peers as ::ffff:1.2.3.4; people and limits mean 1.2.3.4. */
const plainAddress = (address: string): string => MAPPED_IPV4.exec(address)?.[1] ?? address;

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');

export type CallerAddress = (peer: string, forwardedFor: string | undefined) => string;

/** `trusted`: addresses and networks, as in `[platform] trusted_proxies`. */
export const callerAddressOf = (trusted: readonly string[]): CallerAddress => {
  if (trusted.length === 0) return plainAddress;
  const proxies = new BlockList();
  for (const entry of trusted) {
    const [address = '', bits] = entry.split('/');
    if (bits === undefined) proxies.addAddress(address, familyOf(address));
    else proxies.addSubnet(address, Number(bits), familyOf(address));
  }
  const isTrusted = (address: string): boolean => isIP(address) !== 0 && proxies.check(address, familyOf(address));
  return (peer, forwardedFor) => {
    let address = plainAddress(peer);
    const hops = forwardedFor?.split(',') ?? [];
    // From the right: each entry was written by the hop after it, so it counts only while that hop is trusted.
    while (isTrusted(address)) {
      const before = plainAddress(hops.pop()?.trim() ?? '');
      // Anything that is no address was not written by a proxy of ours.
      if (isIP(before) === 0) break;
      address = before;
    }
    return address;
  };
};
