// Custom domains with verified owners, as known to the edge. Used for visitors of a disconnected tunnel, and for decisions while the
// platform is unreachable.

import { Fault } from '@tunnel/errors';
import type { Owner } from '@tunnel/rules/tunnels';

/** Domains with a changed owner, and the account of the new owner. Null if the domain has no owner anymore. */
export type DomainKeepers = ReadonlyMap<string, string | null>;

export class VerifiedDomains {
  /** Owners of verified domains: account id by domain. 10,000 domains take about 2 MB. */
  readonly #accounts = new Map<string, string>();

  /** Last account id of domains without a current owner. Open tunnels on a lapsed domain stay open. */
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

  /** Returns the account that can have open tunnels on the domain: the owner, or the last owner of a lapsed domain. */
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

  /**
   * Returns null if the owner can open a tunnel on the domain. The operator needs no verification, but cannot take a domain that belongs
   * to an account.
   */
  refusalFor(domain: string, owner: Owner): Fault | null {
    const keeper = this.#accounts.get(domain);
    const isTheirs = owner.kind === 'operator' ? keeper === undefined : keeper === owner.accountId;
    return isTheirs ? null : new Fault('TUNNEL_DOMAIN_UNVERIFIED', { domain });
  }

  /**
   * Returns the domains that got a new owner, or lost their owner, since an earlier state. A lapsed domain is not included, because its
   * tunnels stay open.
   */
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
