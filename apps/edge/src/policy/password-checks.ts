// Whether a password is right: off the event loop, a few at a time, and known ones at once. Strangers who guess are slowed down by
// address and tunnel, and tenants have their turns: a flood at one waits for itself. Whoever is known already is served as before.

import { hash, randomBytes } from 'node:crypto';
import { Fault } from '@tunnel/errors';
import { type PolicyEffect, type PolicyEvent } from '@tunnel/policy';
import { networkOf } from '@tunnel/rules/net';
import { FairTurns, SlidingWindows, type Turn } from '@tunnel/rules/rate';
import type { Clock } from '@tunnel/runtime';
import { BoundedCache } from './bounded-cache.ts';
import { POLICY_CACHE_CHARS_MAX, POLICY_CACHE_ENTRIES_MAX } from './limits.ts';
import { isPassword } from './password-hash.ts';

/** after which they are told to */
const PASSWORD_BUSY_RETRY_SECS = 2;
/** a password that was right is not checked again before this, counted from its last use */
export const PASSWORD_KNOWN_MS = 600_000;

export type PasswordEffect = Extract<PolicyEffect, { kind: 'check-password' }>;

/** `busy`: there was no room to wait. */
export type PasswordResult = 'ok' | 'wrong' | 'cached' | 'busy';

export interface PasswordSubject {
  /** Of the policy: what is known under one is unknown under the next. */
  readonly policyId: number;
  readonly routeKey: string;
  readonly address: string;
  /** Who waits for whom. */
  readonly tenant: string;
}

/** Says when the visitor has left. Whoever waits asks for the signal, and nobody else has one made. */
export interface Leaving {
  readonly signal: AbortSignal;
}

export interface PasswordChecksOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** The check itself, for tests that count. */
  readonly check?: typeof isPassword;
}

/**
 * The thread pool has four threads, and names are looked up with the same. Passwords that wait have turns by account; further ones are told to come
 * again, first of all those of the account with most waiting.
 */
export const CHECKS = { atOnce: 2, waitingMax: 64 };

/**
 * Of one network at one tunnel. After so many in a minute, no password from there is checked that is not known already.
 * @limit policies: Wrong passwords per minute from a network, per tunnel | 429 `POLICY_RATE_LIMITED`; visitors with an already accepted password still get in
 */
const WRONG_PASSWORDS = { perWindow: 10, windowMs: 60_000, togetherMs: 60_000, keys: 100_000 };

const RIGHT: PolicyEvent = { kind: 'password-checked', isRight: true };
const WRONG: PolicyEvent = { kind: 'password-checked', isRight: false };

/** One password that is being checked, or waits for it; those who bring the same wait together, from wherever they come. */
interface Check extends Turn {
  readonly key: string;
  /** Those of whom it is counted as a failure until it is known to be right, and how many visitors of each wait for it. */
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
  /** Under way and waiting, by the digest of what is checked. */
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
    // Whoever comes goes on being known: it is the same password under the same policy, and to be checked again amid a flood is to be shut out.
    if (this.#known.renew(key, now, now + PASSWORD_KNOWN_MS) === true) {
      this.results.cached += 1;
      return RIGHT;
    }
    const guesser = `${subject.routeKey} ${networkOf(subject.address)}`;
    // After a change of a policy all of its visitors bring the same at once: one check is for all of them.
    const same = this.#checks.get(key);
    if (same?.guessers.has(guesser)) return this.#join(same, guesser, visitor);
    const retryAfterMs = this.#failures.retryAfterMs(guesser, now);
    if (retryAfterMs > 0) return failed('POLICY_RATE_LIMITED', Math.ceil(retryAfterMs / 1000));
    if (same === undefined && !this.#turns.hasRoomFor(subject.tenant)) return this.#busy();
    // Counted before it is known to be wrong: a hundred guesses sent at once must not all be checked.
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
      // The thread pool has no memory for it: nobody is let in, and nobody is blamed.
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

  /** A check that waits goes when the last visitor that wants it has left. One that runs ends by itself, and counts for all who came. */
  #leave(check: Check, guesser: string): void {
    const left = (check.guessers.get(guesser) ?? 0) - 1;
    check.guessers.set(guesser, left);
    if (left > 0 || !this.#turns.isWaiting(check)) return;
    // Nothing was checked: nobody is blamed.
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

/** As base64url they are the 64 characters of a whole block. */
const KEY_BYTES = 48;

/** What is kept in memory of a secret text, so that it can be known again and never be read. It leaves this process nowhere. */
type KeyedDigest = (text: string) => string;

/** SHA-256 behind a key of this process. Texts all the way: buffers cost more than the digest. */
export const createKeyedDigest = (): KeyedDigest => {
  const key = randomBytes(KEY_BYTES).toString('base64url');
  return (text) => hash('sha256', key + text, 'base64url');
};
