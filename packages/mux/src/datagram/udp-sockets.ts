// What every UDP socket of ours is given: an address is not looked up, and there is room for what comes while the process is busy.
import type { Socket } from 'node:dgram';
import { type LookupOptions, lookup } from 'node:dns';
import { isIP } from 'node:net';

type Answer = (error: NodeJS.ErrnoException | null, address: string, family: number) => void;

/**
 * For `createSocket`. Node's own would answer in a later turn, also for an address: a datagram would wait outside of the socket's queue, where
 * nobody looks.
 */
export const lookupAtOnce = (host: string, options: LookupOptions | number, answer: Answer): void => {
  const family = isIP(host);
  if (family !== 0) answer(null, host, family);
  else lookup(host, { family: typeof options === 'number' ? options : (options.family ?? 0) }, answer as never);
};

/** Of a socket that is bound. Linux gives less than it is asked for where `net.core.rmem_max` says so; others refuse, and it stays as it is. */
export const askForReceiveBuffer = (socket: Socket, bytes: number): void => {
  try {
    socket.setRecvBufferSize(bytes);
  } catch {
    // What it had at first is what there is.
  }
};
