// Who may try a password of an account, and how often. Each network, and each device that was logged in before, has a count of its
// own; what strangers try together is bounded too, so that many networks do not guess faster than a few. Whoever guesses slows
// down strangers and never the owner where the owner was before.
import { SlidingWindows } from '@tunnel/rules/rate';

export interface LoginAttempt {
  /** Stands for the account: the same for every spelling of its address, and for one that nobody has. */
  readonly account: string;
  readonly network: string;
  /** The session of this account that the caller shows, living or ended; null: none. */
  readonly device: string | null;
  /** The account was logged in from this network before. */
  readonly isKnownNetwork: boolean;
}

export interface LoginRules {
  /** Failures of one network or device, and of all strangers together. */
  readonly perWindow: number;
  readonly windowMs: number;
  /** Counts that are held: the one that began first leaves first. */
  readonly countsMax: number;
}

export class LoginAttempts {
  readonly #own: SlidingWindows;
  readonly #strangers: SlidingWindows;
  /** What one network adds to the strangers' sum at most: alone it never uses that up. */
  readonly #share: SlidingWindows;

  constructor({ perWindow, windowMs, countsMax: keys }: LoginRules) {
    const rules = { perWindow, windowMs, togetherMs: windowMs, keys };
    this.#own = new SlidingWindows(rules);
    this.#strangers = new SlidingWindows(rules);
    this.#share = new SlidingWindows({ ...rules, perWindow: Math.max(1, Math.floor(perWindow / 2)) });
  }

  /** null: go on, and it counts as a failure until `succeeded` says otherwise; else the milliseconds to wait. */
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

  /** The password was right: only failures count. */
  succeeded(attempt: LoginAttempt): void {
    const own = ownKey(attempt);
    this.#own.forgive(own);
    if (this.#share.forgive(own)) this.#strangers.forgive(attempt.account);
  }
}

const ownKey = ({ account, network, device }: LoginAttempt): string =>
  device === null ? `${account} from ${network}` : `${account} on ${device}`;
