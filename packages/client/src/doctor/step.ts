// One step of the doctor's way: it has a time of its own, so that one that is never answered leaves some for those behind it.
import { connect, type Socket } from 'node:net';
import type { Clock } from '@tunnel/runtime';
import { CLIENT_LIMITS } from '../limits.ts';
import type { ServerAddress } from '../network/endpoint.ts';
import { withinTime } from '../network/within-time.ts';

/** Its time was over. */
export class NoAnswer extends Error {
  constructor() {
    super(`no answer within ${CLIENT_LIMITS.DOCTOR_STEP_WITHIN_MS / 1000} s`);
  }
}

/** `take` is to end with the signal that it is given: with NoAnswer, or with the reason of `signal`. */
export const withinStep = <T>(
  clock: Clock,
  signal: AbortSignal,
  take: (signal: AbortSignal) => Promise<T>,
): Promise<T> =>
  withinTime(clock, CLIENT_LIMITS.DOCTOR_STEP_WITHIN_MS, new NoAnswer(), (late) =>
    take(AbortSignal.any([signal, late])),
  );

/** Ends a socket that is being opened with its signal. Returns what is to be called once it is open. */
export const endWith = (socket: Socket, signal: AbortSignal): (() => void) => {
  const stop = (): void => void socket.destroy(signal.reason as Error);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  return () => signal.removeEventListener('abort', stop);
};

export const connectTcp = ({ host, port }: ServerAddress, signal: AbortSignal): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    const opened = endWith(socket, signal);
    socket.once('error', reject);
    socket.once('connect', () => {
      opened();
      socket.off('error', reject);
      // From here on whoever has it listens; what comes in between is told by the next write.
      socket.on('error', () => {});
      resolve(socket);
    });
  });
