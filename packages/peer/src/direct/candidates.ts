// Where a program may be reached: the addresses of its machine that others could use, and those that the world sees of its socket.
import { BlockList, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { PEER_LIMITS } from '../limits.ts';
import type { PeerAddress } from '../transport/peer-transport.ts';

/** What the edge's two ports have seen. No address: nothing came back, UDP does not get through. */
export interface ObservedAddresses {
  readonly addresses: readonly PeerAddress[];
  /** Both ports saw the same: what one address is told, others can use. Different: the network chooses a port for each. */
  readonly ports: 'consistent' | 'random' | 'none';
}

/** One question through one socket. */
export interface AddressQuery {
  /** Whether the datagram was an answer to it, and is nobody else's. */
  onDatagram(bytes: Buffer, from: PeerAddress): boolean;
  /** Comes once: when both ports have answered, or at the end of the time for it. */
  readonly result: Promise<ObservedAddresses>;
  stop(): void;
}

/** How a socket learns what the world sees of it: by asking the edge's two UDP ports through that very socket. */
export interface AddressObserver {
  ask(send: (bytes: Buffer, to: PeerAddress) => void): AddressQuery;
}

type Interfaces = ReturnType<typeof networkInterfaces>;

/** Of IPv6 only what the world can reach: 2000::/3. Link-local addresses need a zone, unique local ones are seldom of one network. */
const GLOBAL_V6 = new BlockList();
GLOBAL_V6.addSubnet('2000::', 3, 'ipv6');
const LINK_LOCAL_V4 = new BlockList();
LINK_LOCAL_V4.addSubnet('169.254.0.0', 16, 'ipv4');

/** Loopback addresses alone when the edge is on this machine, and never otherwise: there the other peer is itself. */
export const ownAddresses = (
  isEdgeLoopback: boolean,
  interfaces: Interfaces = networkInterfaces(),
): readonly string[] => {
  const found: string[] = [];
  for (const { address, family, internal } of Object.values(interfaces).flatMap((addresses) => addresses ?? [])) {
    const isUsable = family === 'IPv6' ? internal || GLOBAL_V6.check(address, 'ipv6') : !LINK_LOCAL_V4.check(address);
    if (isUsable && (!internal || isEdgeLoopback)) found.push(address);
  }
  return found;
};

/** What the world sees first: those are the ones that others need most when there are too many. */
export const candidatesOf = (
  own: readonly string[],
  port: number,
  observed: ObservedAddresses,
): readonly PeerAddress[] => {
  const byKey = new Map<string, PeerAddress>();
  for (const address of [...observed.addresses, ...own.map((host) => ({ host, port }))]) {
    byKey.set(addressKey(address), address);
  }
  return [...byKey.values()].slice(0, PEER_LIMITS.PEER_CANDIDATES_MAX);
};

export const addressKey = ({ host, port }: PeerAddress): string =>
  isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
