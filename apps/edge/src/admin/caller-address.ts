// Whose address a request is counted against: the peer's, or the one that a trusted proxy says it speaks for.
import { plainAddress } from '../ingress/peer-address.ts';

export const callerAddress = (
  peer: string,
  forwardedFor: string | undefined,
  trustedProxies: readonly string[],
): string => {
  let address = plainAddress(peer);
  const hops = forwardedFor?.split(',').map((hop) => plainAddress(hop.trim())) ?? [];
  // From the right: each entry was written by the hop after it, so it counts only while that hop is trusted.
  while (trustedProxies.includes(address)) {
    const before = hops.pop();
    if (before === undefined || before === '') break;
    address = before;
  }
  return address;
};
