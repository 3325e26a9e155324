// Rate limits for password attempts on an account. Every network, and every device that was signed in before, has a separate count. The
// attempts of all strangers together are limited too, so that many networks cannot guess faster than a few. An attacker slows down
// strangers, but never the owner on a known device or network.
import { SlidingWindows } from '@tunnel/rules/rate';

export interface LoginAttempt {
  /** Stands for the account. Equal for every spelling of the address, and set even for an address without an account. */
  readonly account: string;
  readonly network: string;
  /** Id of the account's session, active or ended, for which the caller sent a refresh token. Null without such a token. */
  readonly device: string | null;
  /** True if the account was signed in from the network before. */
  readonly isKnownNetwork: boolean;
}

export interface LoginRules {
  /** Maximum number of failed sign-ins per window: of a network or device, and of all strangers together. */
  readonly perWindow: number;
  readonly windowMs: number;
  /** Maximum number of counts in memory. The oldest count is evicted first. */
  readonly countsMax: number;
}

export class LoginAttempts {
  readonly #own: SlidingWindows;
  readonly #strangers: SlidingWindows;
  /** Limits the share of a single network in the strangers' total, so that a single network cannot exhaust the total. */
  readonly #share: SlidingWindows;

  constructor({ perWindow, windowMs, countsMax: keys }: LoginRules) {
    const rules = { perWindow, windowMs, togetherMs: windowMs, keys };
    this.#own = new SlidingWindows(rules);
    this.#strangers = new SlidingWindows(rules);
    this.#share = new SlidingWindows({ ...rules, perWindow: Math.max(1, Math.floor(perWindow / 2)) });
  }

  /**
   * Starts a password attempt. Returns null if the attempt is allowed; the attempt then counts as a failure until `succeeded` is called.
   * Otherwise returns the milliseconds to wait.
   */
  begin(attempt: LoginAttempt, now: number): number | null {
    const own = ownKey(attempt);
    const isStranger = attempt.device === null && !attempt.isKnownNetwork;
    const strangersMs = isStranger ? this.#strangers.retryAfterMs(attempt.account, now) : 0;
    const waitMs = Math.max(this.#own.retryAfterMs(own, now), strangersMs);
    if (waitMs > 0) return waitMs;
    this.#own.record(own, now);
    if (isStranger && this.#share.take(own, now) === 0) this.#strangers.record(attempt.account, now);
    return null;
  }

  /** Removes an attempt from the counts after a correct password, because only failures count. */
  succeeded(attempt: LoginAttempt): void {
    const own = ownKey(attempt);
    this.#own.forgive(own);
    if (this.#share.forgive(own)) this.#strangers.forgive(attempt.account);
  }
}

const ownKey = ({ account, network, device }: LoginAttempt): string =>
  device === null ? `${account} from ${network}` : `${account} on ${device}`;
