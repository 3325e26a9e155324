// Turns what a server listens on into what a person or a script on this machine can type.
import type { Edge } from '@tunnel/edge';

type Address = Edge['addresses']['control'];

const EVERY_ADDRESS = new Set(['0.0.0.0', '::', '']);

/** host:port, with loopback for a server that listens everywhere. */
export const hostPort = ({ host, port }: Address): string => {
  const reachable = EVERY_ADDRESS.has(host) ? '127.0.0.1' : host;
  return `${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
};

export const httpUrl = (address: Address, path = ''): string => `http://${hostPort(address)}${path}`;
