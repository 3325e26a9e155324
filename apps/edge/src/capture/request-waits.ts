// API calls that wait for the next request of a tunnel to finish. Without waiting calls, a request only costs a check of an empty map.

import { Fault } from '@tunnel/errors';
import { FairShare } from '@tunnel/rules/rate';
import type { Clock } from '@tunnel/runtime';
import type { CaptureRecorder } from './recorder.ts';

/** Maximum API calls that wait for requests, over all tunnels. Each holds an API connection. */
const REQUEST_WAITS_MAX = 1024;
/**
 * Maximum waiting calls of an account. Sufficient for all concurrent calls of an MCP host and of the platform.
 * @limit api: Calls waiting for a request, per account | 429 `CAPTURE_WAITS_BUSY`
 */
export const REQUEST_WAITS_PER_OWNER = 64;
/** Retry delay sent to an API call that is rejected because too many are waiting. */
const REQUEST_WAITS_BUSY_RETRY_MS = 5000;

export interface RequestWait {
  readonly tunnelId: string;
  /** Account charged for the waiting API call. */
  readonly holder: string;
  readonly timeoutMs: number;
  /** Aborts when the caller of the API has disconnected. */
  readonly signal: AbortSignal;
  readonly isWanted: (recorder: CaptureRecorder) => boolean;
}

interface Waiter {
  readonly isWanted: RequestWait['isWanted'];
  readonly settle: (recorder: CaptureRecorder | null) => void;
}

export class RequestWaits {
  readonly #clock: Clock;
  /** Waiting API calls by tunnel. Tunnels without waiting calls have no entry. */
  readonly #byTunnel = new Map<string, Set<Waiter>>();
  readonly #shares = new FairShare({
    limit: REQUEST_WAITS_MAX,
    perHolder: REQUEST_WAITS_PER_OWNER,
  });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get count(): number {
    return this.#shares.taken;
  }

  /**
   * Resolves to the first matching request that finishes. Resolves to null at the timeout, when the tunnel closes, or when the caller
   * disconnects.
   */
  wait({ tunnelId, holder, timeoutMs, signal, isWanted }: RequestWait): Promise<CaptureRecorder | null> {
    if (this.#shares.refusal(holder) !== null) {
      const seconds = REQUEST_WAITS_BUSY_RETRY_MS / 1000;
      throw new Fault('CAPTURE_WAITS_BUSY', { limit: this.#shares.of(holder), seconds });
    }
    if (signal.aborted) return Promise.resolve(null);
    return new Promise((resolve) => {
      const settle = (recorder: CaptureRecorder | null): void => {
        if (!this.#remove(tunnelId, waiter)) return;
        this.#shares.give(holder);
        timer.cancel();
        signal.removeEventListener('abort', leave);
        resolve(recorder);
      };
      const waiter: Waiter = { isWanted, settle };
      const leave = (): void => settle(null);
      const timer = this.#clock.setTimeout(leave, timeoutMs);
      signal.addEventListener('abort', leave, { once: true });
      this.#shares.take(holder);
      const waiters = this.#byTunnel.get(tunnelId) ?? new Set();
      this.#byTunnel.set(tunnelId, waiters.add(waiter));
    });
  }

  /** Called once for every captured request, when it has finished. */
  onFinished(tunnelId: string, recorder: CaptureRecorder): void {
    if (this.#byTunnel.size === 0) return;
    for (const waiter of this.#byTunnel.get(tunnelId) ?? []) {
      if (waiter.isWanted(recorder)) waiter.settle(recorder);
    }
  }

  onTunnelEnd(tunnelId: string): void {
    for (const waiter of this.#byTunnel.get(tunnelId) ?? []) waiter.settle(null);
  }

  #remove(tunnelId: string, waiter: Waiter): boolean {
    const waiters = this.#byTunnel.get(tunnelId);
    if (waiters?.delete(waiter) !== true) return false;
    if (waiters.size === 0) this.#byTunnel.delete(tunnelId);
    return true;
  }
}
