// Who has which name. A name has one owner; one whose owner went away is held for a while, and only that owner gets it back.

export type WantedName =
  | { readonly kind: 'any' }
  /** This name when it is free. */
  | { readonly kind: 'preferred'; readonly name: string }
  /** This name or none. */
  | { readonly kind: 'exact'; readonly name: string };

type NameUse = 'free' | 'leased' | 'held';

interface Lease {
  readonly owner: string;
  /** null: in use. */
  readonly heldUntil: number | null;
  /** Held for a service that ends TLS itself. */
  readonly passesTls: boolean;
}

export class NameLeases {
  readonly #leases = new Map<string, Lease>();
  /** No hold runs out before this. */
  #earliestEnd = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#leases.size;
  }

  useOf(name: string, now: number): NameUse {
    const lease = this.#living(name, now);
    if (lease === undefined) return 'free';
    return lease.heldUntil === null ? 'leased' : 'held';
  }

  /** Its owner is away, and nobody may end TLS for it meanwhile. */
  isHeldForTls(name: string, now: number): boolean {
    const lease = this.#living(name, now);
    return lease !== undefined && lease.heldUntil !== null && lease.passesTls;
  }

  /** false: it is another's. The owner of a name may ask for it again. */
  lease(name: string, owner: string, now: number): boolean {
    this.#endHolds(now);
    const lease = this.#living(name, now);
    if (lease !== undefined && lease.owner !== owner) return false;
    this.#leases.set(name, { owner, heldUntil: null, passesTls: false });
    return true;
  }

  /** Only the owner's name is held; anyone else's is left alone, and so is one whose hold has run out. */
  hold(name: string, owner: string, until: number, now: number, passesTls = false): void {
    if (this.#living(name, now)?.owner !== owner) return;
    this.#leases.set(name, { owner, heldUntil: until, passesTls });
    this.#earliestEnd = Math.min(this.#earliestEnd, until);
  }

  /** What one owner has is another's from now on, held or in use as it was. */
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

  /** Names that nobody asks for again must not stay for ever. */
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
