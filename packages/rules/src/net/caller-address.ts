// The address that a request is counted for: the peer's, or the address forwarded by a trusted proxy.
import ipaddr from 'ipaddr.js';
import { readV6 } from './address-groups.ts';

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Unwraps IPv4-mapped addresses. A dual-stack listener sees IPv4 peers as ::ffff:1.2.3.4; people, limits and local services expect 1.2.3.4.
 */
export const plainAddress = (address: string): string =>
  // Addresses without a colon are plain IPv4: a fast path, because this code runs at every accept.
  address.includes(':') ? (MAPPED_IPV4.exec(address)?.[1] ?? address) : address;

/**
 * The network that a limit per address counts: an IPv4 address, or the /64 of an IPv6 address, which providers assign to a customer.
 * `address` is in the form of plainAddress; any other text is returned unchanged.
 */
export const networkOf = (address: string): string => {
  if (!address.includes(':')) return address;
  const groups = readV6(address);
  if (groups === null) return networkOfOdd(address);
  const hexOf = (group: number): string => (groups[group] as number).toString(16);
  return `${hexOf(0)}:${hexOf(1)}:${hexOf(2)}:${hexOf(3)}::/64`;
};

/** Returns the network of an address in an unusual spelling of IPv6. */
const networkOfOdd = (address: string): string => {
  const [plain = ''] = address.split('%');
  if (!ipaddr.IPv6.isValid(plain)) return address;
  return `${ipaddr.IPv6.parse(plain)
    .parts.slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
};

export type CallerAddress = (peer: string, forwardedFor: string | undefined) => string;

interface Caller {
  readonly address: string;
  /** X-Forwarded-For as if the request had come without trusted proxies: the addresses claimed by the caller, then the caller's address. */
  readonly chain: string;
}

/** Addresses and networks of `trusted_proxies` in server.toml. */
export class TrustedProxies {
  readonly #networks: readonly (readonly [ipaddr.IPv4 | ipaddr.IPv6, number])[];

  constructor(trusted: readonly string[]) {
    this.#networks = trusted.map((entry) =>
      ipaddr.parseCIDR(entry.includes('/') ? entry : `${entry}/${bitsOf(entry)}`),
    );
  }

  /** `address` is in the form of plainAddress. Returns false for any other text. */
  trusts(address: string): boolean {
    if (this.#networks.length === 0 || !ipaddr.isValid(address)) return false;
    const parsed = ipaddr.parse(address);
    return this.#networks.some(
      ([network, bits]) => network.kind() === parsed.kind() && parsed.match([network, bits] as never),
    );
  }

  callerOf(peer: string, forwardedFor: string | undefined): Caller {
    let address = plainAddress(peer);
    const hops = forwardedFor === undefined ? [] : forwardedFor.split(',').map((hop) => hop.trim());
    // X-Forwarded-For is read from right to left: every entry was written by the hop after it, so it counts only while that hop is
    // trusted.
    while (this.trusts(address)) {
      const before = plainAddress(hops.at(-1) ?? '');
      // An entry of X-Forwarded-For that is no address was not written by a trusted proxy.
      if (!ipaddr.isValid(before)) break;
      hops.pop();
      address = before;
    }
    const claims = hops.filter((hop) => hop !== '');
    return { address, chain: [...claims, address].join(', ') };
  }
}

/** Returns the function that finds a caller's address. `trusted` has addresses and networks, as in `trusted_proxies` of server.toml. */
export const createCallerAddress = (trusted: readonly string[]): CallerAddress => {
  if (trusted.length === 0) return plainAddress;
  const proxies = new TrustedProxies(trusted);
  return (peer, forwardedFor) => proxies.callerOf(peer, forwardedFor).address;
};

const bitsOf = (address: string): number => (ipaddr.parse(address).kind() === 'ipv4' ? 32 : 128);

/** Formats a peer's address and port for logs, the REST API and stream heads. */
export const hostPort = (address: string, port: number): string => {
  const plain = plainAddress(address);
  return plain.includes(':') ? `[${plain}]:${port}` : `${plain}:${port}`;
};
