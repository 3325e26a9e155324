// Keys of a visitor's address: for its flow, for the limit per address, and for the prefix that new flows are counted under. IPv4 keys are
// numbers, so that finding the flow of a datagram allocates no string. IPv4-mapped addresses (::ffff:1.2.3.4) count as IPv4.
import ipaddr from 'ipaddr.js';
import { networkOf } from '../net/caller-address.ts';

/** address × 65536 + port for IPv4, which fits into a double; text for IPv6. */
export type FlowKey = number | string;

const MAPPED = '::ffff:';
const DOT = 46;
const ZERO = 48;
const PORTS = 65_536;

/** Returns an IPv4 address as a number, or -1 for any other text. */
export const ipv4Of = (address: string): number => {
  let value = 0;
  let part = -1;
  let dots = 0;
  for (let at = address.startsWith(MAPPED) ? MAPPED.length : 0; at < address.length; at += 1) {
    const code = address.charCodeAt(at);
    if (code === DOT) {
      if (part < 0) return -1;
      value = value * 256 + part;
      part = -1;
      dots += 1;
      continue;
    }
    const digit = code - ZERO;
    if (digit < 0 || digit > 9) return -1;
    part = (part < 0 ? 0 : part * 10) + digit;
    if (part > 255) return -1;
  }
  return dots === 3 && part >= 0 ? value * 256 + part : -1;
};

export const flowKeyOf = (address: string, port: number): FlowKey => {
  const ipv4 = ipv4Of(address);
  return ipv4 >= 0 ? ipv4 * PORTS + port : `${address} ${port}`;
};

/** Key of the limit per address: an IPv4 address, or the /64 of an IPv6 address. */
export const addressKeyOf = (address: string): FlowKey => {
  const ipv4 = ipv4Of(address);
  return ipv4 >= 0 ? ipv4 : networkOf(address);
};

/**
 * Prefix for counting new flows and DNS queries: a /24 of IPv4, a /56 of IPv6. A sender who can forge one address of a prefix can forge all
 * of them.
 */
export const prefixKeyOf = (address: string): FlowKey => {
  const ipv4 = ipv4Of(address);
  if (ipv4 >= 0) return Math.floor(ipv4 / 256);
  const [plain = ''] = address.split('%');
  if (!ipaddr.IPv6.isValid(plain)) return address;
  const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv6.parse(plain).parts;
  return `${a.toString(16)}:${b.toString(16)}:${c.toString(16)}:${(d >> 8).toString(16)}`;
};

export interface LoopFacts {
  /** The machine's own IP addresses, in the form of plainAddress. */
  readonly ownAddresses: ReadonlySet<string>;
  /** Port range of UDP tunnels. */
  readonly range: { readonly from: number; readonly to: number };
  /** The two UDP ports used between client and edge. */
  readonly pathPorts: readonly number[];
}

/**
 * Returns true for a datagram from the edge itself, because two services that answer everything would loop forever. Port 0 cannot be
 * answered.
 */
export const isLoop = (address: string, port: number, { ownAddresses, range, pathPorts }: LoopFacts): boolean => {
  if (port === 0) return true;
  const isOurs = (port >= range.from && port <= range.to) || pathPorts.includes(port);
  return isOurs && ownAddresses.has(address.startsWith(MAPPED) ? address.slice(MAPPED.length) : address);
};
