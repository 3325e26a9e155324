// Password checks: off the event loop, a few at a time, with a cache of accepted passwords. Wrong guesses are rate-limited by network and
// tunnel. Waiting checks take turns by tenant, so that a flood at a tenant delays only that tenant. Visitors with a cached password are
// served as usual.

import { hash, randomBytes } from 'node:crypto';
import { Fault } from '@tunnel/errors';
import { type PolicyEffect, type PolicyEvent } from '@tunnel/policy';
import { networkOf } from '@tunnel/rules/net';
import { FairTurns, SlidingWindows, type Turn } from '@tunnel/rules/rate';
import type { Clock } from '@tunnel/runtime';
import { BoundedCache } from './bounded-cache.ts';
import { POLICY_CACHE_CHARS_MAX, POLICY_CACHE_ENTRIES_MAX } from './limits.ts';
import { isPassword } from './password-hash.ts';

/** Seconds in the Retry-After header when the queue of password checks is full. */
const PASSWORD_BUSY_RETRY_SECS = 2;
/** How long an accepted password is cached after its last use. */
export const PASSWORD_KNOWN_MS = 600_000;

export type PasswordEffect = Extract<PolicyEffect, { kind: 'check-password' }>;

/** Result of a password check. `busy`: the queue was full. */
export type PasswordResult = 'ok' | 'wrong' | 'cached' | 'busy';

export interface PasswordSubject {
  /** Number that identifies the policy. An accepted password is cached only for the policy that accepted it. */
  readonly policyId: number;
  readonly routeKey: string;
  readonly address: string;
  /** Tenant charged for the check. Checks of the same tenant wait for each other. */
  readonly tenant: string;
}

/** Reports that the visitor has disconnected. `signal` can be a lazy getter, so only code that waits reads it. */
export interface Leaving {
  readonly signal: AbortSignal;
}

export interface PasswordChecksOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Replaces the scrypt check in tests that count calls. */
  readonly check?: typeof isPassword;
}

/**
 * Limits for running and waiting password checks. Only two run at once, because the thread pool has four threads and also resolves host
 * names. Waiting checks take turns by account. When the queue is full, the account with the most waiting checks loses its last one, and
 * the visitor is asked to retry.
 */
export const CHECKS = { atOnce: 2, waitingMax: 64 };

/**
 * Limit for wrong passwords from a network at a tunnel. Beyond the limit, only cached passwords are accepted from the network.
 * @limit policies: Wrong passwords per minute from a network, per tunnel | 429 `POLICY_RATE_LIMITED`; visitors with an already accepted password still get in
 */
const WRONG_PASSWORDS = { perWindow: 10, windowMs: 60_000, togetherMs: 60_000, keys: 100_000 };

const RIGHT: PolicyEvent = { kind: 'password-checked', isRight: true };
const WRONG: PolicyEvent = { kind: 'password-checked', isRight: false };

/** Running or waiting check of a password. Visitors with the same password share the check, regardless of their networks. */
interface Check extends Turn {
  readonly key: string;
  /**
   * Networks that sent the password, with the number of their visitors that wait. The check counts as a failure of every network until
   * the password has proved right.
   */
  readonly guessers: Map<string, number>;
  readonly promise: Promise<PolicyEvent>;
}

export class PasswordChecks {
  readonly results: Record<PasswordResult, number> = { ok: 0, wrong: 0, cached: 0, busy: 0 };
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #check: typeof isPassword;
  readonly #digest: KeyedDigest = createKeyedDigest();
  readonly #known = new BoundedCache<true>({
    entriesMax: POLICY_CACHE_ENTRIES_MAX,
    charsMax: POLICY_CACHE_CHARS_MAX,
  });
  readonly #failures = new SlidingWindows(WRONG_PASSWORDS);
  /** Running and waiting checks, by the digest of the policy, user and password. */
  readonly #checks = new Map<string, Check>();
  readonly #turns = new FairTurns(CHECKS);

  constructor({ clock, check = isPassword }: PasswordChecksOptions) {
    this.#clock = clock;
    this.#check = check;
  }

  get waiting(): number {
    return this.#turns.waiting;
  }

  perform(effect: PasswordEffect, subject: PasswordSubject, visitor: Leaving): PolicyEvent | Promise<PolicyEvent> {
    const now = this.#clock.monotonic();
    const key = this.#digest(`${subject.policyId}\0${effect.hash ?? ''}\0${effect.user}\0${effect.password}`);
    // Every use extends the lifetime of the cache entry: a new check during a flood would lock out visitors with a valid password.
    if (this.#known.renew(key, now, now + PASSWORD_KNOWN_MS) === true) {
      this.results.cached += 1;
      return RIGHT;
    }
    const guesser = `${subject.routeKey} ${networkOf(subject.address)}`;
    // After a change of a policy, many visitors send the same password at the same time. They share a single check.
    const same = this.#checks.get(key);
    if (same?.guessers.has(guesser)) return this.#join(same, guesser, visitor);
    const retryAfterMs = this.#failures.retryAfterMs(guesser, now);
    if (retryAfterMs > 0) return failed('POLICY_RATE_LIMITED', Math.ceil(retryAfterMs / 1000));
    if (same === undefined && !this.#turns.hasRoomFor(subject.tenant)) return this.#busy();
    // Count a failure before the result is known, so that a hundred guesses sent at once are not all checked.
    this.#failures.record(guesser, now);
    return this.#join(same ?? this.#begin(effect, key, guesser, subject), guesser, visitor);
  }

  #busy(): PolicyEvent {
    this.results.busy += 1;
    return failed('POLICY_BUSY', PASSWORD_BUSY_RETRY_SECS);
  }

  #begin(effect: PasswordEffect, key: string, guesser: string, { tenant }: PasswordSubject): Check {
    let settle: (event: PolicyEvent | Promise<PolicyEvent>) => void = () => {};
    const promise = new Promise<PolicyEvent>((resolve) => (settle = resolve));
    const check: Check = {
      key,
      guessers: new Map([[guesser, 0]]),
      promise,
      owner: tenant,
      begin: () => settle(this.#run(effect, check).finally(() => this.#ended(check))),
      giveWay: () => {
        this.#checks.delete(key);
        this.#forgiveAll(check);
        settle(this.#busy());
      },
    };
    this.#checks.set(key, check);
    this.#turns.enter(check);
    return check;
  }

  async #run(effect: PasswordEffect, check: Check): Promise<PolicyEvent> {
    try {
      const isRight = await this.#check(effect.password, effect.hash);
      this.results[isRight ? 'ok' : 'wrong'] += 1;
      if (!isRight) return WRONG;
      this.#known.set(check.owner, check.key, true, this.#clock.monotonic() + PASSWORD_KNOWN_MS);
      this.#forgiveAll(check);
      return RIGHT;
    } catch (error) {
      // The thread pool has no memory for scrypt: reject the request, but do not count a wrong password.
      this.#forgiveAll(check);
      const fault = new Fault('POLICY_BUSY', {}, { cause: error });
      return { kind: 'failed', fault, retryAfterSecs: PASSWORD_BUSY_RETRY_SECS };
    }
  }

  #ended({ key }: Check): void {
    this.#checks.delete(key);
    this.#turns.done();
  }

  #forgiveAll({ guessers }: Check): void {
    for (const guesser of guessers.keys()) this.#failures.forgive(guesser);
  }

  /**
   * Removes a visitor that disconnected. A waiting check is dropped after its last visitor has left. A running check completes, and its
   * result counts for every network that sent the password.
   */
  #leave(check: Check, guesser: string): void {
    const left = (check.guessers.get(guesser) ?? 0) - 1;
    check.guessers.set(guesser, left);
    if (left > 0 || !this.#turns.isWaiting(check)) return;
    // The password was not checked, so the network's failure is taken back.
    check.guessers.delete(guesser);
    this.#failures.forgive(guesser);
    if (check.guessers.size > 0) return;
    this.#turns.leave(check);
    this.#checks.delete(check.key);
  }

  #join(check: Check, guesser: string, { signal }: Leaving): Promise<PolicyEvent> {
    check.guessers.set(guesser, (check.guessers.get(guesser) ?? 0) + 1);
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#leave(check, guesser);
        resolve(WRONG);
      };
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      check.promise.then((event) => {
        signal.removeEventListener('abort', onAbort);
        resolve(event);
      }, reject);
    });
  }
}

const failed = (code: 'POLICY_BUSY' | 'POLICY_RATE_LIMITED', retryAfterSecs: number): PolicyEvent => ({
  kind: 'failed',
  fault: new Fault(code),
  retryAfterSecs,
});

/** Size of the random key: 48 bytes are 64 base64url characters, a full SHA-256 block. */
const KEY_BYTES = 48;

/**
 * Keyed hash of a secret text, for use as a cache key. The hash recognizes the text but does not reveal it. Hashes never leave the
 * process.
 */
type KeyedDigest = (text: string) => string;

/**
 * Creates a SHA-256 hash function keyed with a random key of this process. Works on strings, because buffers would cost more than the
 * hash.
 */
export const createKeyedDigest = (): KeyedDigest => {
  const key = randomBytes(KEY_BYTES).toString('base64url');
  return (text) => hash('sha256', key + text, 'base64url');
};
