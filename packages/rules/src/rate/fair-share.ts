// Fair shares of a limited resource, so that a holder can exhaust only its share. Every holder has a maximum, and when nearly all is
// taken, only holders below the mean get more. If the resource can be reclaimed, a full one is reclaimed from the holder furthest above its
// share; otherwise a part is kept free.
import { NOT_RANKED, type Ranked, Ranking } from '../collections/ranking.ts';

/** Used fraction of the resource from which only holders below the mean get more. */
const CROWDED_SHARE = 0.9;

/** Fraction of a non-reclaimable resource kept free for others. A holder above its share cannot use it. */
const FREE_FOR_OTHERS = 0.25;

export interface SharesOptions {
  readonly limit: number;
  readonly perHolder: number;
  /** Holders without a maximum. The reserve for holders below the mean still applies. */
  readonly unlimited?: string | ((holder: string) => boolean);
}

class Holder implements Ranked {
  readonly name: string;
  /** Amount of the shared resource that the holder has. */
  rank = 0;
  heapIndex = NOT_RANKED;

  constructor(name: string) {
    this.name = name;
  }
}

export type ShareRefusal = 'holder-full' | 'nearly-all-taken' | 'all-taken';

/** State of a resource that cannot be reclaimed, from the view of one holder. */
export interface KeptStock {
  readonly limit: number;
  readonly free: number;
  /** Amount of the resource that the holder has. */
  readonly held: number;
  /** Amount of the resource that the holder may always have. */
  readonly perHolder: number;
}

/**
 * Decides whether a holder may have one more of a non-reclaimable resource, such as ports or certificate orders. Returns null if allowed. A
 * holder above its share gets more only while over a quarter is free: a single account can use three quarters, and every other account
 * still gets its share at once.
 */
export const refusalToKeep = ({ limit, free, held, perHolder }: KeptStock): ShareRefusal | null => {
  if (free < 1) return 'all-taken';
  if (held < perHolder) return null;
  return free > limit * FREE_FOR_OTHERS ? null : 'holder-full';
};

export class FairShare {
  readonly limit: number;
  readonly perHolder: number;
  readonly #isUnlimited: (holder: string) => boolean;
  readonly #of = new Map<string, Holder>();
  /** Holders with a maximum, the holder with the largest amount first. */
  readonly #ranking = new Ranking<Holder>();
  #taken = 0;

  constructor({ limit, perHolder, unlimited }: SharesOptions) {
    this.limit = limit;
    this.perHolder = perHolder;
    this.#isUnlimited = typeof unlimited === 'function' ? unlimited : (holder) => holder === unlimited;
  }

  get taken(): number {
    return this.#taken;
  }

  of(holder: string): number {
    return this.#of.get(holder)?.rank ?? 0;
  }

  /** Returns the amount that each holder has. */
  held(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#of.values()].map(({ name, rank }) => [name, rank]));
  }

  /** Checks whether a holder may take `count` more of the resource. Returns null if so, otherwise the reason. */
  refusal(holder: string, count = 1, perHolder = this.perHolder): ShareRefusal | null {
    const held = this.of(holder);
    if (held + count > perHolder && !this.#isUnlimited(holder)) return 'holder-full';
    if (this.#taken + count > this.limit) return 'all-taken';
    if (this.#taken < this.limit * CROWDED_SHARE) return null;
    return held * this.#of.size < this.#taken ? null : 'nearly-all-taken';
  }

  /**
   * Applies refusalToKeep to a holder of this resource. `besides` is an amount that the holder has from elsewhere and that is not free
   * either.
   */
  refusalToKeep(holder: string, free = this.limit - this.#taken, besides = 0): ShareRefusal | null {
    const perHolder = this.#isUnlimited(holder) ? Number.POSITIVE_INFINITY : this.perHolder;
    return refusalToKeep({ limit: this.limit, free, held: this.of(holder) + besides, perHolder });
  }

  /** The holder that has the most, among holders with a maximum. Null if there is none. */
  get largest(): string | null {
    return this.#ranking.first?.name ?? null;
  }

  /** The holder to reclaim from: the largest, if above its share. Null if every holder is within its share. */
  get mostBeyond(): string | null {
    const { first } = this.#ranking;
    return first !== null && first.rank > this.perHolder ? first.name : null;
  }

  /** Adds to a holder's amount. Every take() must be followed by give() for the same holder and total count. */
  take(name: string, count = 1): void {
    let holder = this.#of.get(name);
    if (holder === undefined) {
      holder = new Holder(name);
      this.#of.set(name, holder);
      if (!this.#isUnlimited(name)) this.#ranking.add(holder);
    }
    holder.rank += count;
    this.#taken += count;
    this.#ranking.moved(holder);
  }

  give(name: string, count = 1): void {
    const holder = this.#of.get(name);
    if (holder === undefined || holder.rank < count) return;
    holder.rank -= count;
    this.#taken -= count;
    if (holder.rank > 0) return this.#ranking.moved(holder);
    this.#of.delete(name);
    this.#ranking.remove(holder);
  }
}
