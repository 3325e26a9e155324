// Retries an assertion until it passes, instead of sleeping. The last failure becomes the error of the test.

import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

export interface EventuallyOptions {
  readonly timeoutMs?: number;
  /** Pause between attempts. Default: a short, growing pause, because most conditions are met within moments. */
  readonly intervalMs?: number;
}

/** Default time limit. Generous for busy machines; only failing tests wait so long. */
const PATIENCE_MS = 15_000;
const FIRST_INTERVAL_MS = 2;
const LAST_INTERVAL_MS = 20;

/** Calls `check` repeatedly until `check` no longer throws. Resolves with the result of `check`. */
export const eventually = async <T>(check: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> => {
  const { timeoutMs = PATIENCE_MS, intervalMs } = options;
  const giveUpAt = performance.now() + timeoutMs;
  for (let growingMs = FIRST_INTERVAL_MS; ; growingMs = Math.min(2 * growingMs, LAST_INTERVAL_MS)) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() >= giveUpAt) throw error;
    }
    await pause(intervalMs ?? growingMs);
  }
};

/** Resolves when a server accepts connections on the port. */
export const waitForPort = (port: number, options: EventuallyOptions & { host?: string } = {}): Promise<void> =>
  eventually(() => tryToConnect(options.host ?? '127.0.0.1', port), options);

const tryToConnect = (host: string, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
