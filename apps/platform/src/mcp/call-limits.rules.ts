// How many calls of one account may be open at a time, and how many may begin within a window. Whoever is let in owes one `ended`.
import { FailureWindow } from '@tunnel/rules/rate';

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
  readonly #openMax: number;
  readonly #begun: FailureWindow;
  /** Accounts without an open call are not in it. */
  readonly #open = new Map<string, number>();

  constructor({ openMax, perWindow, windowMs, accountsMax }: CallRules) {
    this.#openMax = openMax;
    this.#begun = new FailureWindow({ perWindow, windowMs, addressesMax: accountsMax });
  }

  openOf(account: string): number {
    return this.#open.get(account) ?? 0;
  }

  /** A call that is refused counts for nothing: whoever waits as long as it was told to gets in. */
  begin(account: string, now: number): CallVerdict {
    const rate = this.#begun.check(account, now);
    if (!rate.allowed) return { allowed: false, reason: 'rate', retryAfterMs: rate.retryAfterMs };
    const open = this.openOf(account);
    if (open >= this.#openMax) return { allowed: false, reason: 'open' };
    this.#begun.record(account, now);
    this.#open.set(account, open + 1);
    return { allowed: true };
  }

  ended(account: string): void {
    const open = this.openOf(account) - 1;
    if (open > 0) this.#open.set(account, open);
    else this.#open.delete(account);
  }
}
