// Whether a password is right: off the event loop, a few at a time, and known ones at once. Strangers who guess are slowed down by
// address and tunnel, and tenants have their turns: a flood at one waits for itself. Whoever is known already is served as before.
import { FailureWindow, FairTurns, networkOf, type PolicyEvent, type PolicyNeed, type Turn } from '@tunnel/core';
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
  /** Who waits for whom. */
  readonly tenant: string;
}

/** Says when the visitor has left. Whoever waits asks for the signal, and nobody else has one made. */
export interface Leaving {
  readonly signal: AbortSignal;
}

export interface PasswordChecksDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** The check itself, for tests that count. */
  readonly check?: typeof isPassword;
}

const RIGHT: PolicyEvent = { kind: 'password-checked', isRight: true };
const WRONG: PolicyEvent = { kind: 'password-checked', isRight: false };

/** One password that is being checked, or waits for it; those who bring the same wait together. */
interface Check extends Turn {
  readonly guesser: string;
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
  readonly #turns = new FairTurns({
    atOnce: EDGE_LIMITS.PASSWORD_CHECKS_AT_ONCE,
    waitingMax: EDGE_LIMITS.PASSWORD_CHECKS_WAITING_MAX,
  });

  constructor({ clock, check = isPassword }: PasswordChecksDeps) {
    this.#clock = clock;
    this.#check = check;
  }

  get waiting(): number {
    return this.#turns.waiting;
  }

  perform(need: PasswordNeed, about: PasswordAbout, visitor: Leaving): PolicyEvent | Promise<PolicyEvent> {
    const now = this.#clock.monotonic();
    const key = this.#digest(`${about.policyId}\0${need.hash ?? ''}\0${need.user}\0${need.password}`);
    // Whoever comes goes on being known: it is the same password under the same policy, and to be checked again amid a flood is to be shut out.
    if (this.#known.renew(key, now, now + EDGE_LIMITS.PASSWORD_KNOWN_MS) === true) {
      this.results.cached += 1;
      return RIGHT;
    }
    const guesser = `${about.routeKey} ${networkOf(about.address)}`;
    const same = this.#checks.get(`${guesser} ${key}`);
    if (same !== undefined) return this.#join(`${guesser} ${key}`, same, visitor);
    const verdict = this.#failures.check(guesser, now);
    if (!verdict.allowed) return failed('POLICY_RATE_LIMITED', Math.max(1, Math.ceil(verdict.retryAfterMs / 1000)));
    if (!this.#turns.hasRoomFor(about.tenant)) return this.#busy();
    // Counted before it is known to be wrong: a hundred guesses sent at once must not all be checked.
    this.#failures.record(guesser, now);
    return this.#join(`${guesser} ${key}`, this.#begin(need, key, guesser, about), visitor);
  }

  #busy(): PolicyEvent {
    this.results.busy += 1;
    return failed('POLICY_BUSY', EDGE_LIMITS.PASSWORD_BUSY_RETRY_SECS);
  }

  #begin(need: PasswordNeed, key: string, guesser: string, { tenant }: PasswordAbout): Check {
    const id = `${guesser} ${key}`;
    let settle: (event: PolicyEvent | Promise<PolicyEvent>) => void = () => {};
    const promise = new Promise<PolicyEvent>((resolve) => (settle = resolve));
    const check: Check = {
      ...{ guesser, promise, owner: tenant, waiters: 0 },
      begin: () => settle(this.#run(need, key, guesser, tenant).finally(() => this.#ended(id))),
      giveWay: () => {
        this.#forgetWaiting(id, guesser);
        settle(this.#busy());
      },
    };
    this.#checks.set(id, check);
    this.#turns.enter(check);
    return check;
  }

  async #run(need: PasswordNeed, key: string, guesser: string, tenant: string): Promise<PolicyEvent> {
    try {
      const isRight = await this.#check(need.password, need.hash);
      this.results[isRight ? 'ok' : 'wrong'] += 1;
      if (!isRight) return WRONG;
      this.#known.set(tenant, key, true, this.#clock.monotonic() + EDGE_LIMITS.PASSWORD_KNOWN_MS);
      this.#failures.forgive(guesser);
      return RIGHT;
    } catch (error) {
      // The thread pool has no memory for it: nobody is let in, and nobody is blamed.
      this.#failures.forgive(guesser);
      const fault = new Fault('POLICY_BUSY', {}, { cause: error });
      return { kind: 'failed', fault, retryAfterSecs: EDGE_LIMITS.PASSWORD_BUSY_RETRY_SECS };
    }
  }

  #ended(id: string): void {
    this.#checks.delete(id);
    this.#turns.done();
  }

  /** Nothing was checked: nobody is blamed. */
  #forgetWaiting(id: string, guesser: string): void {
    this.#checks.delete(id);
    this.#failures.forgive(guesser);
  }

  /** A check that waits goes when the last visitor that wants it has left. One that runs ends by itself. */
  #join(id: string, check: Check, { signal }: Leaving): Promise<PolicyEvent> {
    check.waiters += 1;
    const leave = (): void => {
      check.waiters -= 1;
      if (check.waiters === 0 && this.#turns.leave(check)) this.#forgetWaiting(id, check.guesser);
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
