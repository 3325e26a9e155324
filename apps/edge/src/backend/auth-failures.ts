// Refused keys per address: one gate for the control port and the REST together, or each would be a way around the other.
import { FailureWindow } from '@tunnel/core';
import { LIMITS } from '@tunnel/protocol';

export class AuthFailures {
  readonly #window: FailureWindow;
  readonly #now: () => number;
  #total = 0;

  constructor(options: { readonly perMinute: number; readonly now: () => number }) {
    this.#window = new FailureWindow({
      perWindow: options.perMinute,
      windowMs: LIMITS.AUTH_FAILURE_WINDOW_MS,
      addressesMax: LIMITS.AUTH_FAILURE_ADDRESSES_MAX,
    });
    this.#now = options.now;
  }

  /** Since the start, of all addresses. */
  get total(): number {
    return this.#total;
  }

  /** 0: the address may try. */
  blockedForSecs(address: string): number {
    const verdict = this.#window.check(address, this.#now());
    return verdict.allowed ? 0 : Math.ceil(verdict.retryAfterMs / 1000);
  }

  failed(address: string): void {
    this.#total += 1;
    this.#window.record(address, this.#now());
  }
}
