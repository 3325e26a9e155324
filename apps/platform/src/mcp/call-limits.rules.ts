// Limits the calls of an account: how many are open at the same time, and how many begin within a window. Every allowed `begin` must be
// followed by exactly one `ended`.
import { InFlight, SlidingWindows } from '@tunnel/rules/rate';

export interface CallRules {
  readonly openMax: number;
  readonly perWindow: number;
  readonly windowMs: number;
  /** Maximum number of accounts with a stored window. Beyond the limit, the oldest window is evicted. */
  readonly accountsMax: number;
}

export type CallVerdict =
  | { readonly allowed: true }
  /** `open`: too many calls are open. The time until a call ends is unknown, so there is no retry time. */
  | { readonly allowed: false; readonly reason: 'open' }
  | { readonly allowed: false; readonly reason: 'rate'; readonly retryAfterMs: number };

export class CallLimits {
  readonly #begun: SlidingWindows;
  readonly #open: InFlight;

  constructor({ openMax, perWindow, windowMs, accountsMax }: CallRules) {
    this.#begun = new SlidingWindows({ perWindow, windowMs, togetherMs: windowMs, keys: accountsMax });
    this.#open = new InFlight({ perKey: openMax });
  }

  openOf(account: string): number {
    return this.#open.of(account);
  }

  /** Counts a call, or rejects the call. Rejected calls are not counted, so a caller that waits for the stated time gets in. */
  begin(account: string, now: number): CallVerdict {
    const retryAfterMs = this.#begun.retryAfterMs(account, now);
    if (retryAfterMs > 0) return { allowed: false, reason: 'rate', retryAfterMs };
    if (!this.#open.begin(account)) return { allowed: false, reason: 'open' };
    this.#begun.record(account, now);
    return { allowed: true };
  }

  ended(account: string): void {
    this.#open.end(account);
  }
}
