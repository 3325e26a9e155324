// Waits for a promise with a time limit. The underlying work is not canceled when the time is up.
import type { Clock, Timer } from '@tunnel/runtime';

export class TimeoutError extends Error {}

export const withTimeout = async <T>(clock: Clock, work: Promise<T>, ms: number): Promise<T> => {
  let timer: Timer | undefined;
  const end = new Promise<never>((_resolve, reject) => {
    timer = clock.setTimeout(() => reject(new TimeoutError(`took longer than ${ms / 1000} s`)), ms);
  });
  try {
    return await Promise.race([work, end]);
  } finally {
    timer?.cancel();
  }
};
