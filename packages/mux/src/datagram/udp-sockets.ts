// Settings of all our UDP sockets: no lookup for IP addresses, and a larger receive buffer for times when the process is busy.
import type { Socket } from 'node:dgram';
import { type LookupOptions, lookup } from 'node:dns';
import { isIP } from 'node:net';

type Answer = (error: NodeJS.ErrnoException | null, address: string, family: number) => void;

/**
 * Lookup function for `createSocket`. Node's lookup answers in a later turn even for IP addresses; datagrams would wait outside the
 * socket's queue, where they are not counted.
 */
export const lookupAtOnce = (host: string, options: LookupOptions | number, answer: Answer): void => {
  const family = isIP(host);
  if (family !== 0) answer(null, host, family);
  else lookup(host, { family: typeof options === 'number' ? options : (options.family ?? 0) }, answer as never);
};

/**
 * Requests a receive buffer for a bound socket. Linux limits the size to `net.core.rmem_max`; other systems refuse, and the default stays.
 */
export const askForReceiveBuffer = (socket: Socket, bytes: number): void => {
  try {
    socket.setRecvBufferSize(bytes);
  } catch {
    // The system rejected the requested receive buffer size: the socket keeps the default size.
  }
};
