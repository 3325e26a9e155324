// How often one network may try anything of this, how often a password of one account may be tried, and how often its mails.

import { type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { networkOf } from '@tunnel/rules/net';
import { SlidingWindows } from '@tunnel/rules/rate';
import { normalizeAddress } from '@tunnel/rules/sign-in';
import { sha256Hex } from '@tunnel/runtime';
import { type LoginAttempt, LoginAttempts } from '../../services/auth/login-attempts.rules.ts';

/** A minute begins with the first attempt. */
const MINUTE = { windowMs: 60_000, togetherMs: 60_000 };
/** Networks, accounts or users whose attempts of a kind are counted. */
const KEYS_MAX = 50_000;

/** What somebody types an address for. */
export type AskedMail = 'registration' | 'verification' | 'reset';

export class AttemptLimits {
  readonly #perAddress: SlidingWindows;
  readonly #mails: SlidingWindows;
  readonly #passwords: SlidingWindows;
  readonly #logins: LoginAttempts;
  readonly #monotonic: () => number;

  constructor(
    limits: Pick<ServerConfig['platform']['limits'], 'auth_per_minute' | 'auth_per_account_per_minute'>,
    monotonic: () => number,
    keys: number = KEYS_MAX,
  ) {
    const { auth_per_minute: perAddress, auth_per_account_per_minute: perAccount } = limits;
    this.#perAddress = new SlidingWindows({ ...MINUTE, perWindow: perAddress, keys });
    this.#mails = new SlidingWindows({ ...MINUTE, perWindow: perAccount, keys });
    this.#passwords = new SlidingWindows({ ...MINUTE, perWindow: perAccount, keys });
    this.#logins = new LoginAttempts({ perWindow: perAccount, windowMs: MINUTE.windowMs, countsMax: keys });
    this.#monotonic = monotonic;
  }

  /** Throws LOGIN_THROTTLED. */
  countAddress(address: string): void {
    refuseAfter(this.#perAddress.take(networkOf(address), this.#monotonic()));
  }

  /**
   * Throws LOGIN_THROTTLED. Each kind apart, and from logins: neither guessing a password nor asking for what sends no mail, as a
   * registration of an address that somebody has, keeps its owner from asking for a new password.
   */
  countMail(kind: AskedMail, email: string): void {
    // Hashed: people type all kinds of things of any length.
    refuseAfter(this.#mails.take(`${kind} ${sha256Hex(normalizeAddress(email))}`, this.#monotonic()));
  }

  /**
   * Throws LOGIN_THROTTLED. Of somebody who is logged in and shows the password once more: apart from logins, so that whoever has
   * an access token alone can neither guess it nor keep its owner from logging in.
   */
  countPassword(userId: string): void {
    refuseAfter(this.#passwords.take(userId, this.#monotonic()));
  }

  /** Throws LOGIN_THROTTLED. Counts as a failure until it has succeeded, so that many at once are no way around. */
  beginLogin(attempt: LoginAttempt): void {
    refuseAfter(this.#logins.begin(attempt, this.#monotonic()) ?? 0);
  }

  loginSucceeded(attempt: LoginAttempt): void {
    this.#logins.succeeded(attempt);
  }
}

const refuseAfter = (waitMs: number): void => {
  if (waitMs > 0) throw new Fault('LOGIN_THROTTLED', { seconds: Math.ceil(waitMs / 1000) });
};
