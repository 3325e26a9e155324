// Names and their owners. Every name has one owner. When the owner disconnects, the name is held for a while, and only the same owner can
// get it back.

export type WantedName =
  | { readonly kind: 'any' }
  /** Request for the given name if free, otherwise for any name. */
  | { readonly kind: 'preferred'; readonly name: string }
  /** Request for exactly the given name. Fails if the name is taken. */
  | { readonly kind: 'exact'; readonly name: string };

type NameUse = 'free' | 'leased' | 'held';

interface Lease {
  readonly owner: string;
  /** Time until which the name is held for its offline owner; null while the name is in use. */
  readonly heldUntil: number | null;
  /** True if the name is held for a tls tunnel, where only the service ends TLS. */
  readonly passesTls: boolean;
}

export class NameLeases {
  readonly #leases = new Map<string, Lease>();
  /** Time of the earliest possible expiry of a hold, so that the names need not be checked before. */
  #earliestEnd = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#leases.size;
  }

  useOf(name: string, now: number): NameUse {
    const lease = this.#living(name, now);
    if (lease === undefined) return 'free';
    return lease.heldUntil === null ? 'leased' : 'held';
  }

  /** Returns true if the name is held for an offline tls tunnel. The edge must not end TLS for the name meanwhile. */
  isHeldForTls(name: string, now: number): boolean {
    const lease = this.#living(name, now);
    return lease !== undefined && lease.heldUntil !== null && lease.passesTls;
  }

  /** Leases a name. Returns false if the name belongs to a different owner. The owner can lease the same name again. */
  lease(name: string, owner: string, now: number): boolean {
    this.#endHolds(now);
    const lease = this.#living(name, now);
    if (lease !== undefined && lease.owner !== owner) return false;
    this.#leases.set(name, { owner, heldUntil: null, passesTls: false });
    return true;
  }

  /** Holds a name for its owner. Ignored if the name belongs to a different owner, or if its hold has expired. */
  hold(name: string, owner: string, until: number, now: number, passesTls = false): void {
    if (this.#living(name, now)?.owner !== owner) return;
    this.#leases.set(name, { owner, heldUntil: until, passesTls });
    this.#earliestEnd = Math.min(this.#earliestEnd, until);
  }

  /** Transfers a name to a different owner. A held name stays held, and a name in use stays in use. */
  reassign(name: string, owner: string, next: string, now: number): void {
    const lease = this.#living(name, now);
    if (lease?.owner === owner) this.#leases.set(name, { ...lease, owner: next });
  }

  release(name: string, owner: string): void {
    if (this.#leases.get(name)?.owner === owner) this.#leases.delete(name);
  }

  #living(name: string, now: number): Lease | undefined {
    const lease = this.#leases.get(name);
    if (lease === undefined || lease.heldUntil === null || now < lease.heldUntil) return lease;
    this.#leases.delete(name);
    return undefined;
  }

  /** Deletes expired holds, because a name that is never requested again would otherwise stay forever. */
  #endHolds(now: number): void {
    if (now < this.#earliestEnd) return;
    this.#earliestEnd = Number.POSITIVE_INFINITY;
    for (const [name, { heldUntil }] of this.#leases) {
      if (heldUntil === null) continue;
      if (now >= heldUntil) this.#leases.delete(name);
      else this.#earliestEnd = Math.min(this.#earliestEnd, heldUntil);
    }
  }
}
