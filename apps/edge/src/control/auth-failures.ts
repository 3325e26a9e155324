// Refused keys per address, one count for the control port and the REST together: each would be a way around the other.
import { FailureWindow } from '@tunnel/core';
import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

export class AuthFailures {
  readonly #clock: Clock;
  readonly #window: FailureWindow;
  #total = 0;

  constructor(options: { readonly clock: Clock; readonly perMinute: number }) {
    this.#clock = options.clock;
    this.#window = new FailureWindow({
      perWindow: options.perMinute,
      windowMs: EDGE_LIMITS.AUTH_FAILURE_WINDOW_MS,
      addressesMax: EDGE_LIMITS.AUTH_FAILURE_ADDRESSES_MAX,
    });
  }

  /** Since the start. */
  get total(): number {
    return this.#total;
  }

  /** 0: the address may try. */
  blockedForSecs(address: string): number {
    const verdict = this.#window.check(address, this.#clock.monotonic());
    return verdict.allowed ? 0 : Math.max(1, Math.ceil(verdict.retryAfterMs / 1000));
  }

  failed(address: string): void {
    this.#total += 1;
    this.#window.record(address, this.#clock.monotonic());
  }
}
