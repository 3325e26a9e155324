// How the address of a peer is written: in logs, in the REST, and in the head of a stream.
import { isIPv6 } from 'node:net';

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** A dual-stack listener sees IPv4 peers as ::ffff:1.2.3.4; people, limits and local services mean 1.2.3.4. */
export const plainAddress = (address: string): string => MAPPED_IPV4.exec(address)?.[1] ?? address;

export const hostPort = (address: string, port: number): string => {
  const plain = plainAddress(address);
  return isIPv6(plain) ? `[${plain}]:${port}` : `${plain}:${port}`;
};
