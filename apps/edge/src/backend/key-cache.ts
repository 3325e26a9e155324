// What the platform said of keys: accepted ones for a minute, for an hour while it is away; refused ones for a moment.
import type { AccountProfile, AccountRights, KeyAnswer } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';
import type { KeyVerdict } from './backend.ts';
import { KeyCheckQueue } from './key-check-queue.ts';

export interface CachedKey {
  readonly tokenHash: string;
  readonly keyId: string;
  readonly unlimited: boolean;
  account: AccountRights;
  readonly profile: AccountProfile | undefined;
  /** On the monotonic clock. */
  askedAt: number;
}

export interface KeyCacheOptions {
  readonly clock: Clock;
  /** Rejects when the platform cannot be asked. */
  readonly ask: (tokenHash: string) => Promise<KeyAnswer>;
}

/** How often a question is put again because something was revoked while it was under way. */
const TRIES = 3;

export class KeyCache {
  readonly #options: KeyCacheOptions;
  readonly #accepted = new Map<string, CachedKey>();
  readonly #byKeyId = new Map<string, CachedKey>();
  readonly #refused = new Map<string, { readonly fault: Fault; readonly until: number }>();
  readonly #inFlight = new Map<string, Promise<KeyVerdict>>();
  readonly #queue: KeyCheckQueue;
  #revocations = 0;

  constructor(options: KeyCacheOptions) {
    this.#options = options;
    const { KEY_CHECKS_PER_SECOND: perSecond, KEY_CHECKS_WAITING_MAX: waitingMax } = EDGE_LIMITS;
    this.#queue = new KeyCheckQueue({ clock: options.clock, perSecond, waitingMax });
  }

  async verify(tokenHash: string): Promise<KeyVerdict> {
    const now = this.#options.clock.monotonic();
    const cached = this.#accepted.get(tokenHash);
    if (cached !== undefined && now - cached.askedAt < EDGE_LIMITS.KEY_FRESH_MS) return accept(cached);
    const refused = this.#refused.get(tokenHash);
    if (refused !== undefined && now < refused.until) return { ok: false, fault: refused.fault };
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
    return [...this.#accepted.values()];
  }

  // ---- changes ----

  accountChanged(account: AccountRights): void {
    for (const cached of this.#accepted.values()) {
      if (cached.account.account_id === account.account_id) cached.account = account;
    }
  }

  /** What is under way may have been answered before: it is asked again. */
  forget(isMeant: (cached: CachedKey) => boolean): void {
    this.#revocations += 1;
    for (const cached of [...this.#accepted.values()]) if (isMeant(cached)) this.#drop(cached);
  }

  /** None is fresh any more, all are asked for at their next use; while the platform is away they stand. */
  expireAll(): void {
    this.#revocations += 1;
    for (const cached of this.#accepted.values()) cached.askedAt = Math.min(cached.askedAt, this.#staleSince());
    this.#refused.clear();
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
    const cached = this.#accepted.get(tokenHash);
    const isStanding =
      cached !== undefined && this.#options.clock.monotonic() - cached.askedAt < EDGE_LIMITS.KEY_STALE_MS;
    return isStanding ? accept(cached) : { ok: false, fault: new Fault('AUTH_BACKEND_AWAY') };
  }

  #learn(tokenHash: string, answer: KeyAnswer): KeyVerdict {
    const before = this.#accepted.get(tokenHash);
    if (before !== undefined) this.#drop(before);
    if (!answer.ok) return this.#refuse(tokenHash, Fault.fromWire(answer.code, answer.message));
    const { key_id: keyId, unlimited, account, profile } = answer;
    const askedAt = this.#options.clock.monotonic();
    const cached: CachedKey = { tokenHash, keyId, unlimited, account, profile, askedAt };
    this.#refused.delete(tokenHash);
    this.#accepted.set(tokenHash, cached);
    this.#byKeyId.set(keyId, cached);
    const [oldest] = this.#accepted.values();
    if (this.#accepted.size > EDGE_LIMITS.KNOWN_KEYS_MAX && oldest !== undefined) this.#drop(oldest);
    return accept(cached);
  }

  #refuse(tokenHash: string, fault: Fault): KeyVerdict {
    if (fault.retryable) return { ok: false, fault };
    this.#refused.delete(tokenHash);
    this.#refused.set(tokenHash, { fault, until: this.#options.clock.monotonic() + EDGE_LIMITS.KEY_REFUSED_MS });
    const [oldest] = this.#refused.keys();
    if (this.#refused.size > EDGE_LIMITS.REFUSED_KEYS_MAX && oldest !== undefined) this.#refused.delete(oldest);
    return { ok: false, fault };
  }

  #drop(cached: CachedKey): void {
    this.#accepted.delete(cached.tokenHash);
    if (this.#byKeyId.get(cached.keyId) === cached) this.#byKeyId.delete(cached.keyId);
  }

  #staleSince(): number {
    return this.#options.clock.monotonic() - EDGE_LIMITS.KEY_FRESH_MS;
  }
}

const accept = ({ keyId, account, profile }: CachedKey): KeyVerdict => ({
  ok: true,
  owner: { kind: 'account', accountId: account.account_id },
  keyId,
  profile: profile && { account: profile.email, plan: account.plan, dashboardUrl: profile.dashboard_url },
});
