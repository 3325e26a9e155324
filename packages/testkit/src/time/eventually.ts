// Waiting without sleeping: an assertion is tried until it passes; the last failure is what the test reports.

import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

export interface EventuallyOptions {
  readonly timeoutMs?: number;
  /** Between two tries. Unless given, a short time that grows: most of what tests wait for is there after a moment. */
  readonly intervalMs?: number;
}

/** A busy machine is slow; only a test that waits in vain takes all of it. */
const PATIENCE_MS = 15_000;
const FIRST_INTERVAL_MS = 2;
const LAST_INTERVAL_MS = 20;

/** Returns what `check` returned when it first did not throw. */
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

/** Resolves once something accepts connections on the port. */
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
