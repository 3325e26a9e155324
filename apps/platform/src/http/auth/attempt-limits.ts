// How often one address, and how often anybody for one account, may try what guesses passwords or sends mails.
import { isIPv6 } from 'node:net';
import { normalizeAddress } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { type ServerConfig, sha256Hex } from '@tunnel/runtime';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { LIMITS } from '../../limits.ts';

const WINDOW_SECS = 60;

/** Guessing a password must not keep its owner from asking for a new one. */
export type AttemptKind = 'login' | 'mail';

export class AttemptLimits {
  readonly #perAddress: BoundedLimiter;
  readonly #perAccount: BoundedLimiter;

  constructor(limits: ServerConfig['platform']['limits'], keysMax: number = LIMITS.ATTEMPT_KEYS_MAX) {
    this.#perAddress = new BoundedLimiter(limits.auth_per_minute, keysMax);
    this.#perAccount = new BoundedLimiter(limits.auth_per_account_per_minute, keysMax);
  }

  /** Throws LOGIN_THROTTLED. */
  async countAddress(address: string): Promise<void> {
    refuseAfter(await this.#perAddress.take(networkOf(address)));
  }

  /** Throws LOGIN_THROTTLED. */
  async countAccount(kind: AttemptKind, email: string): Promise<void> {
    // Hashed: people type all kinds of things of any length.
    refuseAfter(await this.#perAccount.take(`${kind} ${sha256Hex(normalizeAddress(email))}`));
  }
}

const refuseAfter = (waitMs: number | null): void => {
  if (waitMs !== null) throw new Fault('LOGIN_THROTTLED', { seconds: Math.max(1, Math.ceil(waitMs / 1000)) });
};

/** A household has a /64 of IPv6 addresses: they count as one. */
const networkOf = (address: string): string => {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::');
  const groups = head === '' ? [] : head.split(':');
  const ending = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? [] : new Array<string>(Math.max(0, 8 - groups.length - ending.length)).fill('0');
  return [...groups, ...zeros, ...ending]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
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
