// Own domains that are proven to be an account's, as this edge knows them: for visitors whose tunnel is away, and for when nobody can be asked.

import { Fault } from '@tunnel/errors';
import type { Owner } from '@tunnel/rules/tunnels';

/** Domains that changed hands, and whose each is now; null: nobody's. */
export type DomainKeepers = ReadonlyMap<string, string | null>;

export class VerifiedDomains {
  /** One entry each, the id of the account as it came: 10,000 are some 2 MB. */
  readonly #accounts = new Map<string, string>();

  /** Those that nobody has any more, and whose each was last: its tunnels stay. */
  readonly #lapsed = new Map<string, string>();

  get size(): number {
    return this.#accounts.size;
  }

  set(domain: string, accountId: string | null): void {
    this.#lapsed.delete(domain);
    if (accountId === null) this.#accounts.delete(domain);
    else this.#accounts.set(domain, accountId);
  }

  setLapsed(domain: string, accountId: string): void {
    this.#accounts.delete(domain);
    this.#lapsed.set(domain, accountId);
  }

  /** Whose tunnels may be on it: also where it has lapsed. */
  lastAccountOf(domain: string): string | null {
    return this.#accounts.get(domain) ?? this.#lapsed.get(domain) ?? null;
  }

  lapsed(): IterableIterator<[string, string]> {
    return this.#lapsed.entries();
  }

  accountOf(domain: string): string | null {
    return this.#accounts.get(domain) ?? null;
  }

  entries(): IterableIterator<[string, string]> {
    return this.#accounts.entries();
  }

  /** null: it may be served for this owner. The operator needs no proof, and takes nothing that an account has. */
  refusalFor(domain: string, owner: Owner): Fault | null {
    const keeper = this.#accounts.get(domain);
    const isTheirs = owner.kind === 'operator' ? keeper === undefined : keeper === owner.accountId;
    return isTheirs ? null : new Fault('TUNNEL_DOMAIN_UNVERIFIED', { domain });
  }

  /** Those that are somebody else's than before, or were taken from whoever had them. That one has lapsed ends no tunnel. */
  changedSince(before: VerifiedDomains): DomainKeepers {
    const changed = new Map<string, string | null>();
    for (const [domain, accountId] of this.#accounts) {
      if (before.accountOf(domain) !== accountId) changed.set(domain, accountId);
    }
    for (const had of [before.#accounts, before.#lapsed]) {
      for (const [domain, accountId] of had) {
        const last = this.lastAccountOf(domain);
        if (last !== accountId && !this.#accounts.has(domain)) changed.set(domain, null);
      }
    }
    return changed;
  }
}
