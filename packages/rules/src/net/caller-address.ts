// Whose address a request is counted against: the peer's, or the one that a trusted proxy says it speaks for.
import ipaddr from 'ipaddr.js';
import { readV6 } from './address-groups.ts';

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** A dual-stack listener sees IPv4 peers as ::ffff:1.2.3.4; people, limits and local services mean 1.2.3.4. */
export const plainAddress = (address: string): string =>
  // Asked at each accept: most are IPv4 as such.
  address.includes(':') ? (MAPPED_IPV4.exec(address)?.[1] ?? address) : address;

/**
 * What a limit per address counts: an IPv4 address, or the /64 of an IPv6 one, which is what one customer of a provider is given.
 * `address` as plainAddress gives it; what is no IPv6 address stands for itself.
 */
export const networkOf = (address: string): string => {
  if (!address.includes(':')) return address;
  const groups = readV6(address);
  if (groups === null) return networkOfOdd(address);
  const hexOf = (group: number): string => (groups[group] as number).toString(16);
  return `${hexOf(0)}:${hexOf(1)}:${hexOf(2)}:${hexOf(3)}::/64`;
};

/** Written as hardly anybody writes one. */
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
  /** What the caller claims to speak for, and its own address last: X-Forwarded-For as if it had come without our proxies. */
  readonly chain: string;
}

/** Addresses and networks, as in `trusted_proxies` of server.toml. */
export class TrustedProxies {
  readonly #networks: readonly (readonly [ipaddr.IPv4 | ipaddr.IPv6, number])[];

  constructor(trusted: readonly string[]) {
    this.#networks = trusted.map((entry) =>
      ipaddr.parseCIDR(entry.includes('/') ? entry : `${entry}/${bitsOf(entry)}`),
    );
  }

  /** `address` as plainAddress gives it; what is no address is trusted by nobody. */
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
    // From the right: each entry was written by the hop after it, so it counts only while that hop is trusted.
    while (this.trusts(address)) {
      const before = plainAddress(hops.at(-1) ?? '');
      // Anything that is no address was not written by a proxy of ours.
      if (!ipaddr.isValid(before)) break;
      hops.pop();
      address = before;
    }
    const claims = hops.filter((hop) => hop !== '');
    return { address, chain: [...claims, address].join(', ') };
  }
}

/** `trusted`: addresses and networks, as in `trusted_proxies` of server.toml. */
export const callerAddressOf = (trusted: readonly string[]): CallerAddress => {
  if (trusted.length === 0) return plainAddress;
  const proxies = new TrustedProxies(trusted);
  return (peer, forwardedFor) => proxies.callerOf(peer, forwardedFor).address;
};

const bitsOf = (address: string): number => (ipaddr.parse(address).kind() === 'ipv4' ? 32 : 128);

/** How the address of a peer is written: in logs, in the REST, and in the head of a stream. */
export const hostPort = (address: string, port: number): string => {
  const plain = plainAddress(address);
  return plain.includes(':') ? `[${plain}]:${port}` : `${plain}:${port}`;
};
