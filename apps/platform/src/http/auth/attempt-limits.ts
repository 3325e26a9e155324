// How often one network may try anything of this, how often a password of one account may be tried, and how often its mails.

import { type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { networkOf } from '@tunnel/rules/net';
import { normalizeAddress } from '@tunnel/rules/sign-in';
import { sha256Hex } from '@tunnel/runtime';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { LIMITS } from '../../limits.ts';
import { type LoginAttempt, LoginAttempts } from '../../services/auth/login-attempts.rules.ts';

const WINDOW_SECS = 60;

/** What somebody types an address for. */
export type AskedMail = 'registration' | 'verification' | 'reset';

export class AttemptLimits {
  readonly #perAddress: BoundedLimiter;
  readonly #mails: BoundedLimiter;
  readonly #passwords: BoundedLimiter;
  readonly #logins: LoginAttempts;
  readonly #monotonic: () => number;

  constructor(
    limits: Pick<ServerConfig['platform']['limits'], 'auth_per_minute' | 'auth_per_account_per_minute'>,
    monotonic: () => number,
    keysMax: number = LIMITS.ATTEMPT_KEYS_MAX,
  ) {
    const { auth_per_minute: perAddress, auth_per_account_per_minute: perAccount } = limits;
    this.#perAddress = new BoundedLimiter(perAddress, keysMax);
    this.#mails = new BoundedLimiter(perAccount, keysMax);
    this.#passwords = new BoundedLimiter(perAccount, keysMax);
    this.#logins = new LoginAttempts({ perWindow: perAccount, windowMs: WINDOW_SECS * 1000, countsMax: keysMax });
    this.#monotonic = monotonic;
  }

  /** Throws LOGIN_THROTTLED. */
  async countAddress(address: string): Promise<void> {
    refuseAfter(await this.#perAddress.take(networkOf(address)));
  }

  /**
   * Throws LOGIN_THROTTLED. Each kind apart, and from logins: neither guessing a password nor asking for what sends no mail, as a
   * registration of an address that somebody has, keeps its owner from asking for a new password.
   */
  async countMail(kind: AskedMail, email: string): Promise<void> {
    // Hashed: people type all kinds of things of any length.
    refuseAfter(await this.#mails.take(`${kind} ${sha256Hex(normalizeAddress(email))}`));
  }

  /**
   * Throws LOGIN_THROTTLED. Of somebody who is logged in and shows the password once more: apart from logins, so that whoever has
   * an access token alone can neither guess it nor keep its owner from logging in.
   */
  async countPassword(userId: string): Promise<void> {
    refuseAfter(await this.#passwords.take(userId));
  }

  /** Throws LOGIN_THROTTLED. Counts as a failure until it has succeeded, so that many at once are no way around. */
  beginLogin(attempt: LoginAttempt): void {
    refuseAfter(this.#logins.begin(attempt, this.#monotonic()));
  }

  loginSucceeded(attempt: LoginAttempt): void {
    this.#logins.succeeded(attempt);
  }
}

const refuseAfter = (waitMs: number | null): void => {
  if (waitMs !== null) throw new Fault('LOGIN_THROTTLED', { seconds: Math.max(1, Math.ceil(waitMs / 1000)) });
};

/** rate-limiter-flexible in memory, with an end to the keys it holds: the one seen first leaves first. */
class BoundedLimiter {
  readonly #limiter: RateLimiterMemory;
  readonly #keysMax: number;
  /** In the order of their first attempt. It may hold some whose minute is over. */
  readonly #keys = new Set<string>();

  constructor(points: number, keysMax: number) {
    this.#limiter = new RateLimiterMemory({ points, duration: WINDOW_SECS });
    this.#keysMax = keysMax;
  }

  /** null: go on; else the milliseconds to wait. */
  async take(key: string): Promise<number | null> {
    this.#keys.add(key);
    if (this.#keys.size > this.#keysMax) await this.#letGo();
    try {
      await this.#limiter.consume(key);
      return null;
    } catch (refusal) {
      if (refusal instanceof RateLimiterRes) return refusal.msBeforeNext;
      throw refusal;
    }
  }

  async #letGo(): Promise<void> {
    const [oldest] = this.#keys;
    if (oldest === undefined) return;
    this.#keys.delete(oldest);
    await this.#limiter.delete(oldest);
  }
}
