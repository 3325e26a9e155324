// A stock that many take from, so that one can use up its own part and nobody else's: each may hold so many, and when nearly all is taken
// only those go on who hold less than the others do. Where a stock can be taken back, a full one is taken back from the holder with the most
// beyond its part; where it cannot, a part of it stays free.
import { NOT_RANKED, type Ranked, Ranking } from '../collections/ranking.ts';

/** From here on a holder has to be below the mean. */
const NEARLY_ALL = 0.9;

/** The part of a stock that stays free for others when holders keep what they have: a holder beyond its part may not take from it. */
const FREE_FOR_OTHERS = 0.25;

export interface SharesOptions {
  readonly limit: number;
  readonly perHolder: number;
  /** Holders that may take all but what is left for those below the mean. */
  readonly unlimited?: string | ((holder: string) => boolean);
}

class Holder implements Ranked {
  readonly name: string;
  /** How many it holds. */
  rank = 0;
  heapIndex = NOT_RANKED;

  constructor(name: string) {
    this.name = name;
  }
}

export type ShareRefusal = 'holder-full' | 'nearly-all-taken' | 'all-taken';

/** A stock that cannot be taken back, as one holder finds it. */
export interface KeptStock {
  readonly limit: number;
  readonly free: number;
  /** How much of it the holder has. */
  readonly held: number;
  /** How much of it the holder may have in any case. */
  readonly perHolder: number;
}

/**
 * Why a holder may not have one more of a stock that cannot be taken back, such as ports or certificate orders; null where the holder may. A holder
 * beyond its part gets one more only while over a quarter of the stock is free: a single account can use three quarters, and every other account gets
 * its own at once.
 */
export const refusalToKeep = ({ limit, free, held, perHolder }: KeptStock): ShareRefusal | null => {
  if (free < 1) return 'all-taken';
  if (held < perHolder) return null;
  return free > limit * FREE_FOR_OTHERS ? null : 'holder-full';
};

export class Shares {
  readonly limit: number;
  readonly perHolder: number;
  readonly #isUnlimited: (holder: string) => boolean;
  readonly #of = new Map<string, Holder>();
  /** The limited holders. */
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

  /** What each holds. */
  held(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#of.values()].map(({ name, rank }) => [name, rank]));
  }

  /** Why not; null: so many more may be taken. */
  refusal(holder: string, count = 1, perHolder = this.perHolder): ShareRefusal | null {
    const held = this.of(holder);
    if (held + count > perHolder && !this.#isUnlimited(holder)) return 'holder-full';
    if (this.#taken + count > this.limit) return 'all-taken';
    if (this.#taken < this.limit * NEARLY_ALL) return null;
    return held * this.#of.size < this.#taken ? null : 'nearly-all-taken';
  }

  /** The same for a holder of this stock. `besides`: what the holder has of it without having taken it here, and what is as little free. */
  refusalToKeep(holder: string, free = this.limit - this.#taken, besides = 0): ShareRefusal | null {
    const perHolder = this.#isUnlimited(holder) ? Number.POSITIVE_INFINITY : this.perHolder;
    return refusalToKeep({ limit: this.limit, free, held: this.of(holder) + besides, perHolder });
  }

  /** The limited holder with the most; null when no limited holder holds anything. */
  get largest(): string | null {
    return this.#ranking.first?.name ?? null;
  }

  /** The holder from which a full stock takes back: the one with the most, if that is more than its part. null: every holder is within its part. */
  get mostBeyond(): string | null {
    const { first } = this.#ranking;
    return first !== null && first.rank > this.perHolder ? first.name : null;
  }

  /** Whoever takes owes as much to give(), with the same holder. */
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
