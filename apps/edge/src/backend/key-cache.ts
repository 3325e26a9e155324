// Cache of the platform's key checks. Accepted keys are valid for a minute, or for an hour while the platform is unreachable; rejected
// keys are cached for a few seconds.
import type { AccountProfile, AccountRights, KeyAnswer } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { Cache, type Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { KeyVerdict } from './backend.ts';
import { KeyCheckQueue } from './key-check-queue.ts';
import type { KeptKey } from './key-copies.ts';

/**
 * Time for which an accepted key is not checked again.
 * @limit operator: Accepted API key, time before the edge checks the key again | a revoked key is rejected after this time at the latest, even if the edge missed the change
 */
export const KEY_FRESH_MS = 60_000;
/**
 * Time for which an accepted key stays valid while the platform is unreachable.
 * @limit operator: Platform outage, time in which known keys keep working | `AUTH_BACKEND_AWAY`
 */
export const KEY_STALE_MS = 3600 * 1000;
/** Time for which a rejected key is not checked again. */
export const KEY_REFUSED_MS = 5000;
/** Maximum rejected keys in the cache. Rejected keys have a separate cache, so that guesses cannot evict accepted keys. */
export const REFUSED_KEYS_MAX = 10_000;
/** Maximum key checks per second for connecting clients. After a restart of the edge, all clients connect at once. */
export const KEY_CHECKS_PER_SECOND = 200;
/** Maximum clients waiting for a key check. Because a client waits only 10 s for a response, further clients are told to retry. */
export const KEY_CHECKS_WAITING_MAX = 1000;

export interface CachedKey {
  readonly tokenHash: string;
  readonly keyId: string;
  readonly unlimited: boolean;
  account: AccountRights;
  readonly profile: AccountProfile | undefined;
  /** Time of the last key check, on the monotonic clock. */
  askedAt: number;
  /** True if the key comes from the disk copy of an earlier run. The key may have been revoked since then. */
  readonly isRestored: boolean;
}

export interface KeyCacheOptions {
  readonly clock: Clock;
  /** Asks the platform about a key. Rejects if the platform is unreachable. */
  readonly ask: (tokenHash: string) => Promise<KeyAnswer>;
  /** Called when the accepted keys have changed, so that the copy on disk can be updated. */
  readonly onChanged?: () => void;
}

/** Maximum attempts at a key check. A check is repeated if a revocation arrived while the check was in progress. */
const TRIES = 3;

export class KeyCache {
  readonly #options: KeyCacheOptions;
  /** Accepted keys by hash, most recently checked last. Read with peek() only, so that using a key does not change the order. */
  readonly #accepted = new Cache<string, CachedKey>({
    max: EDGE_LIMITS.KNOWN_KEYS_MAX,
    onLeave: (cached) => {
      if (this.#byKeyId.get(cached.keyId) === cached) this.#byKeyId.delete(cached.keyId);
    },
  });
  readonly #byKeyId = new Map<string, CachedKey>();
  readonly #refused: Cache<string, Fault>;
  readonly #inFlight = new Map<string, Promise<KeyVerdict>>();
  readonly #queue: KeyCheckQueue;
  #revocations = 0;
  /** Hashes of keys from an earlier run that were used in the current run while the platform was unreachable. */
  readonly #usedOnTrust = new Set<string>();
  /** Time of the platform's last response, on the monotonic clock. Up to that time, the platform has reported every revoked key. */
  #heardAt = Number.NEGATIVE_INFINITY;

  constructor(options: KeyCacheOptions) {
    this.#options = options;
    const max = REFUSED_KEYS_MAX;
    const ttlMs = KEY_REFUSED_MS;
    this.#refused = new Cache({ max, ttlMs, clock: options.clock });
    const perSecond = KEY_CHECKS_PER_SECOND;
    const waitingMax = KEY_CHECKS_WAITING_MAX;
    this.#queue = new KeyCheckQueue({ clock: options.clock, perSecond, waitingMax });
  }

  async verify(tokenHash: string): Promise<KeyVerdict> {
    const now = this.#options.clock.monotonic();
    const cached = this.#accepted.peek(tokenHash);
    if (cached !== undefined && now - cached.askedAt < KEY_FRESH_MS) return accept(cached);
    const fault = this.#refused.peek(tokenHash);
    if (fault !== undefined) return { ok: false, fault };
    return this.#share(tokenHash, () => this.#askInTurn(tokenHash));
  }

  /** Checks a key with the platform, bypassing the cache and the queue. Only for keys in use: the caller limits the number of checks. */
  check(tokenHash: string): Promise<KeyVerdict> {
    return this.#share(tokenHash, () => this.#ask(tokenHash));
  }

  /** Shares a check in progress between concurrent requests for the same key. */
  #share(tokenHash: string, ask: () => Promise<KeyVerdict>): Promise<KeyVerdict> {
    const underWay = this.#inFlight.get(tokenHash);
    if (underWay !== undefined) return underWay;
    const inFlight = ask().finally(() => this.#inFlight.delete(tokenHash));
    this.#inFlight.set(tokenHash, inFlight);
    return inFlight;
  }

  byKeyId(keyId: string): CachedKey | undefined {
    return this.#byKeyId.get(keyId);
  }

  all(): readonly CachedKey[] {
    return this.#accepted.values();
  }

  // ---- over a start ----

  /** Returns the accepted keys to store on disk for a start without the platform, most recently checked last. */
  kept(): KeptKey[] {
    const { clock } = this.#options;
    return this.all().map((cached) => ({
      token_hash: cached.tokenHash,
      key_id: cached.keyId,
      unlimited: cached.unlimited,
      account: cached.account,
      known_at: Math.round(clock.now() - (clock.monotonic() - this.#knownAt(cached))),
    }));
  }

  /**
   * Restores keys from disk. Each key is checked at its next use. A key with a future time is skipped: the clock has been set back, so
   * the age of the key is unknown.
   */
  restore(keys: readonly KeptKey[]): void {
    const { clock } = this.#options;
    for (const { token_hash, key_id, unlimited, account, known_at } of keys) {
      const age = clock.now() - known_at;
      if (age < 0 || age >= KEY_STALE_MS || this.#accepted.peek(token_hash) !== undefined) continue;
      const askedAt = clock.monotonic() - Math.max(age, KEY_FRESH_MS);
      this.#add({
        tokenHash: token_hash,
        keyId: key_id,
        unlimited,
        account,
        profile: undefined,
        askedAt,
        isRestored: true,
      });
    }
  }

  /** Returns and clears the restored keys that were used during an outage. Called when the platform is back, to check these keys. */
  takeUsedOnTrust(): readonly CachedKey[] {
    const used = [...this.#usedOnTrust].flatMap((tokenHash) => this.#accepted.peek(tokenHash) ?? []);
    this.#usedOnTrust.clear();
    return used.filter(({ isRestored }) => isRestored);
  }

  // ---- changes ----

  /**
   * Records a response of the platform. The platform has reported all changes by then, so all previously accepted keys are valid at this
   * time.
   */
  heard(): void {
    this.#heardAt = this.#options.clock.monotonic();
  }

  accountChanged(account: AccountRights): void {
    for (const cached of this.#accepted.values()) {
      if (cached.account.account_id === account.account_id) cached.account = account;
    }
    this.#options.onChanged?.();
  }

  /** Removes all matching keys. Checks in progress are repeated, because their response may be older than the revocation. */
  forget(isMeant: (cached: CachedKey) => boolean): void {
    this.#revocations += 1;
    for (const cached of this.#accepted.values()) if (isMeant(cached)) this.#accepted.delete(cached.tokenHash);
    this.#options.onChanged?.();
  }

  /** Makes all keys due for a check at their next use. While the platform is unreachable, the keys stay valid. */
  expireAll(): void {
    this.#revocations += 1;
    for (const cached of this.#accepted.values()) cached.askedAt = Math.min(cached.askedAt, this.#staleSince());
    this.#refused.clear();
    // The edge has missed changes, so earlier responses of the platform no longer confirm the keys.
    this.#heardAt = Number.NEGATIVE_INFINITY;
  }

  // ---- inFlight ----

  async #askInTurn(tokenHash: string): Promise<KeyVerdict> {
    const turn = this.#queue.turn();
    const isIn = typeof turn === 'boolean' ? turn : await turn;
    return isIn ? this.#ask(tokenHash) : this.#whileAway(tokenHash);
  }

  async #ask(tokenHash: string): Promise<KeyVerdict> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const before = this.#revocations;
      let answer: KeyAnswer;
      try {
        answer = await this.#options.ask(tokenHash);
      } catch {
        return this.#whileAway(tokenHash);
      }
      if (before === this.#revocations) return this.#learn(tokenHash, answer);
    }
    return { ok: false, fault: new Fault('AUTH_BACKEND_AWAY') };
  }

  #whileAway(tokenHash: string): KeyVerdict {
    const cached = this.#accepted.peek(tokenHash);
    const isStanding = cached !== undefined && this.#options.clock.monotonic() - this.#knownAt(cached) < KEY_STALE_MS;
    if (!isStanding) return { ok: false, fault: new Fault('AUTH_BACKEND_AWAY') };
    if (cached.isRestored) this.#usedOnTrust.add(tokenHash);
    return accept(cached);
  }

  #learn(tokenHash: string, answer: KeyAnswer): KeyVerdict {
    this.#accepted.delete(tokenHash);
    if (!answer.ok) return this.#refuse(tokenHash, Fault.fromWire(answer.code, answer.message));
    const { key_id: keyId, unlimited, account, profile } = answer;
    const askedAt = this.#options.clock.monotonic();
    const cached: CachedKey = { tokenHash, keyId, unlimited, account, profile, askedAt, isRestored: false };
    this.#refused.delete(tokenHash);
    this.#add(cached);
    this.#options.onChanged?.();
    return accept(cached);
  }

  #add(cached: CachedKey): void {
    this.#accepted.set(cached.tokenHash, cached);
    this.#byKeyId.set(cached.keyId, cached);
  }

  #knownAt({ askedAt, isRestored }: CachedKey): number {
    return isRestored ? askedAt : Math.max(askedAt, this.#heardAt);
  }

  #refuse(tokenHash: string, fault: Fault): KeyVerdict {
    if (!fault.retryable) this.#refused.set(tokenHash, fault);
    return { ok: false, fault };
  }

  #staleSince(): number {
    return this.#options.clock.monotonic() - KEY_FRESH_MS;
  }
}

const accept = ({ keyId, account, profile }: CachedKey): KeyVerdict => ({
  ok: true,
  owner: { kind: 'account', accountId: account.account_id },
  keyId,
  profile: profile && { account: profile.email, plan: account.plan, dashboardUrl: profile.dashboard_url },
});
