// Candidate addresses of a program: usable addresses of its machine, and the public addresses of its socket.
import { BlockList, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { PEER_LIMITS } from '../limits.ts';
import type { PeerAddress } from '../transport/peer-transport.ts';

/** Addresses seen by the edge's two UDP ports. No addresses if UDP does not get through. */
export interface ObservedAddresses {
  readonly addresses: readonly PeerAddress[];
  /**
   * 'consistent' if both ports saw the same address, which other peers can then use. 'random' if the network chooses a port per
   * destination.
   */
  readonly ports: 'consistent' | 'random' | 'none';
}

/** Query for a socket's public address, sent and answered through that socket. */
export interface AddressQuery {
  /** Returns true if the datagram was an answer to this query and needs no further handling. */
  onDatagram(bytes: Buffer, from: PeerAddress): boolean;
  /** Public addresses that were found. Resolves once, when both ports have answered or the query times out. */
  readonly result: Promise<ObservedAddresses>;
  stop(): void;
}

/** Finds the public address of a socket by querying the edge's two UDP ports through the same socket. */
export interface AddressObserver {
  ask(send: (bytes: Buffer, to: PeerAddress) => void): AddressQuery;
}

type Interfaces = ReturnType<typeof networkInterfaces>;

/**
 * Global IPv6 addresses only (2000::/3). Link-local addresses need a zone, and unique local addresses rarely belong to the same network.
 */
const GLOBAL_V6 = new BlockList();
GLOBAL_V6.addSubnet('2000::', 3, 'ipv6');
const LINK_LOCAL_V4 = new BlockList();
LINK_LOCAL_V4.addSubnet('169.254.0.0', 16, 'ipv4');

/** Returns loopback addresses only if the edge is on this machine; elsewhere a loopback address would lead the peer to itself. */
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

/** Returns public addresses first, because peers need them most if the list is cut. */
export const listCandidates = (
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
