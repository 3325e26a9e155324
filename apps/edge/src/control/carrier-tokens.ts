// The single-use tokens by which a carrier proves whose it is. Only their hashes are kept, for a short time and a bounded number.
import { WIRE_LIMITS } from '@tunnel/protocol';
import { type Clock, randomToken, sha256Hex } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

interface Ticket<T> {
  readonly holder: T;
  readonly until: number;
}

export class CarrierTokens<T extends object> {
  readonly #clock: Clock;
  /** By hash, so that a lookup tells nothing of the token by its time. Oldest first: all tokens live equally long. */
  readonly #tickets = new Map<string, Ticket<T>>();
  readonly #hashesOf = new Map<T, Set<string>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#tickets.size;
  }

  /** Over the bound of one holder its oldest tokens stop being valid. */
  issue(holder: T, count: number): string[] {
    const hashes = this.#hashesOf.get(holder) ?? new Set<string>();
    this.#hashesOf.set(holder, hashes);
    const until = this.#clock.monotonic() + EDGE_LIMITS.CARRIER_TOKEN_LIFE_MS;
    const tokens = Array.from({ length: Math.min(count, WIRE_LIMITS.CARRIER_TOKENS_OUTSTANDING_MAX) }, () =>
      randomToken(),
    );
    for (const token of tokens) {
      const hash = sha256Hex(token);
      this.#tickets.set(hash, { holder, until });
      hashes.add(hash);
    }
    for (const hash of hashes) {
      if (hashes.size <= WIRE_LIMITS.CARRIER_TOKENS_OUTSTANDING_MAX) break;
      this.#drop(hash);
    }
    return tokens;
  }

  /** Whose it was, once. */
  redeem(token: string): T | null {
    const hash = sha256Hex(token);
    const ticket = this.#tickets.get(hash);
    if (ticket === undefined) return null;
    this.#drop(hash);
    return this.#clock.monotonic() < ticket.until ? ticket.holder : null;
  }

  revokeAll(holder: T): void {
    for (const hash of this.#hashesOf.get(holder) ?? []) this.#tickets.delete(hash);
    this.#hashesOf.delete(holder);
  }

  dropExpired(): void {
    const now = this.#clock.monotonic();
    for (const [hash, ticket] of this.#tickets) {
      if (now < ticket.until) return;
      this.#drop(hash);
    }
  }

  #drop(hash: string): void {
    const ticket = this.#tickets.get(hash);
    this.#tickets.delete(hash);
    if (ticket === undefined) return;
    const hashes = this.#hashesOf.get(ticket.holder);
    hashes?.delete(hash);
    if (hashes?.size === 0) this.#hashesOf.delete(ticket.holder);
  }
}
