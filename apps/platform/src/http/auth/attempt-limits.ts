// Limits for sign-in and sign-up: attempts per network, password attempts per account, and requested mails per address.

import { type ServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import { networkOf } from '@tunnel/rules/net';
import { SlidingWindows } from '@tunnel/rules/rate';
import { normalizeAddress } from '@tunnel/rules/sign-in';
import { sha256Hex } from '@tunnel/runtime';
import { type LoginAttempt, LoginAttempts } from '../../services/auth/login-attempts.rules.ts';

/** A window of a minute that begins with the first attempt. */
const MINUTE = { windowMs: 60_000, togetherMs: 60_000 };
/** Maximum number of networks, accounts or users with counted attempts, per kind of attempt. */
const KEYS_MAX = 50_000;

/** The purpose for which a mail to an address is requested. */
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

  /** Counts an attempt of a network. Throws LOGIN_THROTTLED if the network has made too many attempts. */
  countAddress(address: string): void {
    refuseAfter(this.#perAddress.take(networkOf(address), this.#monotonic()));
  }

  /**
   * Counts a mail requested for an address. Throws LOGIN_THROTTLED. Every kind of mail is counted separately, and separately from
   * sign-ins: neither guessing a password nor a request that sends no mail, such as registering a taken address, can prevent the owner
   * from requesting a new password.
   */
  countMail(kind: AskedMail, email: string): void {
    // Addresses are hashed, because people type texts of any length.
    refuseAfter(this.#mails.take(`${kind} ${sha256Hex(normalizeAddress(email))}`, this.#monotonic()));
  }

  /**
   * Counts a password repeated by a signed-in user. Throws LOGIN_THROTTLED. Counted separately from sign-ins: a thief with only an access
   * token can neither guess the password nor prevent the owner from signing in.
   */
  countPassword(userId: string): void {
    refuseAfter(this.#passwords.take(userId, this.#monotonic()));
  }

  /**
   * Counts a sign-in attempt. Throws LOGIN_THROTTLED. An attempt counts as failed until it succeeds, so that parallel attempts cannot
   * bypass the limit.
   */
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
