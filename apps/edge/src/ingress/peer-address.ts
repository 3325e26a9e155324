// How the address of a peer is written: in logs, in the REST, and in the head of a stream.
import { isIPv6 } from 'node:net';
import { plainAddress } from '@tunnel/core';

export const hostPort = (address: string, port: number): string => {
  const plain = plainAddress(address);
  return isIPv6(plain) ? `[${plain}]:${port}` : `${plain}:${port}`;
};
