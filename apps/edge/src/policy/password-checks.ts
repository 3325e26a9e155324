// Whether a password is right: off the event loop, a few at a time, and known ones at once. Strangers who guess are slowed down by
// address and tunnel; whoever is known already is served as before.
import { FailureWindow, networkOf, type PolicyEvent, type PolicyNeed } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import { BoundedCache } from './bounded-cache.ts';
import { createKeyedDigest, type KeyedDigest } from './keyed-digest.ts';
import { isPassword } from './password-hash.ts';

export type PasswordNeed = Extract<PolicyNeed, { kind: 'check-password' }>;

/** `busy`: there was no room to wait. */
export type PasswordResult = 'ok' | 'wrong' | 'cached' | 'busy';

export interface PasswordAbout {
  /** Of the policy: what is known under one is unknown under the next. */
  readonly policyId: number;
  readonly routeKey: string;
  readonly address: string;
}

export interface PasswordChecksDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** The check itself, for tests that count. */
  readonly check?: typeof isPassword;
}

const RIGHT: PolicyEvent = { kind: 'password-checked', isRight: true };
const WRONG: PolicyEvent = { kind: 'password-checked', isRight: false };

/** One password that is being checked, or waits for it; those who bring the same wait together. */
interface Check {
  readonly guesser: string;
  readonly run: () => void;
  readonly promise: Promise<PolicyEvent>;
  waiters: number;
}

export class PasswordChecks {
  readonly results: Record<PasswordResult, number> = { ok: 0, wrong: 0, cached: 0, busy: 0 };
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #check: typeof isPassword;
  readonly #digest: KeyedDigest = createKeyedDigest();
  readonly #known = new BoundedCache<true>({
    entriesMax: EDGE_LIMITS.POLICY_CACHE_ENTRIES_MAX,
    charsMax: EDGE_LIMITS.POLICY_CACHE_CHARS_MAX,
  });
  readonly #failures = new FailureWindow({
    perWindow: EDGE_LIMITS.PASSWORD_FAILURES_PER_MINUTE,
    windowMs: 60_000,
    addressesMax: EDGE_LIMITS.PASSWORD_FAILURES_KEPT_MAX,
  });
  /** Under way and waiting, by the digest of what is checked and by who brings it. */
  readonly #checks = new Map<string, Check>();
  readonly #waiting = new Map<string, Check>();
  #running = 0;

  constructor({ clock, check = isPassword }: PasswordChecksDeps) {
    this.#clock = clock;
    this.#check = check;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  perform(need: PasswordNeed, about: PasswordAbout, signal: AbortSignal): PolicyEvent | Promise<PolicyEvent> {
    const now = this.#clock.monotonic();
    const key = this.#digest(`${about.policyId}\0${need.hash ?? ''}\0${need.user}\0${need.password}`);
    if (this.#known.get(key, now) === true) {
      // Whoever comes goes on being known: it is the same password under the same policy, and to be checked again amid a flood is to be shut out.
      this.#known.set(key, true, now + EDGE_LIMITS.PASSWORD_KNOWN_MS);
      this.results.cached += 1;
      return RIGHT;
    }
    const guesser = `${about.routeKey} ${networkOf(about.address)}`;
    const same = this.#checks.get(`${guesser} ${key}`);
    if (same !== undefined) return this.#join(`${guesser} ${key}`, same, signal);
    const verdict = this.#failures.check(guesser, now);
    if (!verdict.allowed) return failed('POLICY_RATE_LIMITED', Math.max(1, Math.ceil(verdict.retryAfterMs / 1000)));
    if (this.#isFull) {
      this.results.busy += 1;
      return failed('POLICY_BUSY', EDGE_LIMITS.PASSWORD_BUSY_RETRY_SECS);
    }
    // Counted before it is known to be wrong: a hundred guesses sent at once must not all be checked.
    this.#failures.record(guesser, now);
    return this.#join(`${guesser} ${key}`, this.#begin(need, key, guesser), signal);
  }

  get #isFull(): boolean {
    return (
      this.#running >= EDGE_LIMITS.PASSWORD_CHECKS_AT_ONCE &&
      this.#waiting.size >= EDGE_LIMITS.PASSWORD_CHECKS_WAITING_MAX
    );
  }

  #begin(need: PasswordNeed, key: string, guesser: string): Check {
    const id = `${guesser} ${key}`;
    let run: () => void = () => {};
    const turn = new Promise<void>((resolve) => (run = resolve));
    const promise = turn.then(async (): Promise<PolicyEvent> => {
      try {
        const isRight = await this.#check(need.password, need.hash);
        this.results[isRight ? 'ok' : 'wrong'] += 1;
        if (!isRight) return WRONG;
        this.#known.set(key, true, this.#clock.monotonic() + EDGE_LIMITS.PASSWORD_KNOWN_MS);
        this.#failures.forgive(guesser);
        return RIGHT;
      } catch (error) {
        // The thread pool has no memory for it: nobody is let in, and nobody is blamed.
        this.#failures.forgive(guesser);
        const fault = new Fault('POLICY_BUSY', {}, { cause: error });
        return { kind: 'failed', fault, retryAfterSecs: EDGE_LIMITS.PASSWORD_BUSY_RETRY_SECS };
      } finally {
        this.#checks.delete(id);
        this.#running -= 1;
        this.#runNext();
      }
    });
    const check: Check = { guesser, run, promise, waiters: 0 };
    this.#checks.set(id, check);
    this.#waiting.set(id, check);
    this.#runNext();
    return check;
  }

  #runNext(): void {
    for (const [id, check] of this.#waiting) {
      if (this.#running >= EDGE_LIMITS.PASSWORD_CHECKS_AT_ONCE) return;
      this.#waiting.delete(id);
      this.#running += 1;
      check.run();
    }
  }

  /** A check that waits goes when the last visitor that wants it has left. One that runs ends by itself. */
  #join(id: string, check: Check, signal: AbortSignal): Promise<PolicyEvent> {
    check.waiters += 1;
    const leave = (): void => {
      check.waiters -= 1;
      if (check.waiters > 0 || this.#waiting.get(id) !== check) return;
      this.#waiting.delete(id);
      this.#checks.delete(id);
      this.#failures.forgive(check.guesser);
    };
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        leave();
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
