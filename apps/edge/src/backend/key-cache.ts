// What the platform said of keys: accepted ones for a minute, for an hour while it is away; refused ones for a moment.
import type { AccountProfile, AccountRights, KeyAnswer } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { Cache, type Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { KeyVerdict } from './backend.ts';
import { KeyCheckQueue } from './key-check-queue.ts';
import type { KeptKey } from './key-copies.ts';

/**
 * a key that the platform accepted is not asked for again before this
 * @limit operator: Accepted API key, time before the edge checks the key again | a revoked key is rejected after this time at the latest, even if the edge missed the change
 */
export const KEY_FRESH_MS = 60_000;
/**
 * how long an accepted key is good while the platform is away
 * @limit operator: Platform outage, time in which known keys keep working | `AUTH_BACKEND_AWAY`
 */
export const KEY_STALE_MS = 3600 * 1000;
/** a refused key is not asked for again before this */
export const KEY_REFUSED_MS = 5000;
/** refused keys that are remembered; apart, so that guesses push no good key out */
export const REFUSED_KEYS_MAX = 10_000;
/** questions for keys of clients that come in, in any second: after a restart they come all at once */
export const KEY_CHECKS_PER_SECOND = 200;
/** clients whose keys wait for that; a client waits 10 s for its answer, further ones are told to come again */
export const KEY_CHECKS_WAITING_MAX = 1000;

export interface CachedKey {
  readonly tokenHash: string;
  readonly keyId: string;
  readonly unlimited: boolean;
  account: AccountRights;
  readonly profile: AccountProfile | undefined;
  /** On the monotonic clock. */
  askedAt: number;
  /** By the copy of an earlier run: nobody has told since then whether it was revoked. */
  readonly isRestored: boolean;
}

export interface KeyCacheOptions {
  readonly clock: Clock;
  /** Rejects when the platform cannot be asked. */
  readonly ask: (tokenHash: string) => Promise<KeyAnswer>;
  /** What kept() gives is another by now. */
  readonly onChanged?: () => void;
}

/** How often a question is put again because something was revoked while it was under way. */
const TRIES = 3;

export class KeyCache {
  readonly #options: KeyCacheOptions;
  /** By the hash of the key, the one that was learnt last at the end: only look at it, so that uses do not change that order. */
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
  /** Of an earlier run, and used in this one while nobody could be asked. */
  readonly #usedOnTrust = new Set<string>();
  /** When the platform was last heard, which tells of each key that is revoked. On the monotonic clock. */
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

  /** Asks, whatever is cached and whoever waits: for keys that are in use, whose number the caller bounds. */
  check(tokenHash: string): Promise<KeyVerdict> {
    return this.#share(tokenHash, () => this.#ask(tokenHash));
  }

  /** Those who ask at the same time share the answer. */
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

  /** Those that a start without the platform may go by, the last one that was learnt at the end. */
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

  /** Each is asked for at its next use. One of later than now was written under a clock that has been set back: how old it is nobody knows. */
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

  /** To be asked for now that the platform is back; once. */
  takeUsedOnTrust(): readonly CachedKey[] {
    const used = [...this.#usedOnTrust].flatMap((tokenHash) => this.#accepted.peek(tokenHash) ?? []);
    this.#usedOnTrust.clear();
    return used.filter(({ isRestored }) => isRestored);
  }

  // ---- changes ----

  /** The platform answers, and has told of all changes: what it accepted before is good at this moment. */
  heard(): void {
    this.#heardAt = this.#options.clock.monotonic();
  }

  accountChanged(account: AccountRights): void {
    for (const cached of this.#accepted.values()) {
      if (cached.account.account_id === account.account_id) cached.account = account;
    }
    this.#options.onChanged?.();
  }

  /** What is under way may have been answered before: it is asked again. */
  forget(isMeant: (cached: CachedKey) => boolean): void {
    this.#revocations += 1;
    for (const cached of this.#accepted.values()) if (isMeant(cached)) this.#accepted.delete(cached.tokenHash);
    this.#options.onChanged?.();
  }

  /** None is fresh any more, all are asked for at their next use; while the platform is away they stand. */
  expireAll(): void {
    this.#revocations += 1;
    for (const cached of this.#accepted.values()) cached.askedAt = Math.min(cached.askedAt, this.#staleSince());
    this.#refused.clear();
    // Something was missed: what was heard says nothing of them any more.
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
