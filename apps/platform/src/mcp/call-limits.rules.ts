// How many calls of one account may be open at a time, and how many may begin within a window. Whoever is let in owes one `ended`.
import { InFlight, SlidingWindows } from '@tunnel/rules/rate';

export interface CallRules {
  readonly openMax: number;
  readonly perWindow: number;
  readonly windowMs: number;
  /** Accounts whose windows are held: the one that began first leaves first. */
  readonly accountsMax: number;
}

export type CallVerdict =
  | { readonly allowed: true }
  /** `open`: too many are under way, which says nothing of when one of them ends. */
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

  /** A call that is refused counts for nothing: whoever waits as long as it was told to gets in. */
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
