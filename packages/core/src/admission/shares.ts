// A stock that many take from, so that one can use up its own part and nobody else's: each may hold so many, and when nearly all is taken
// only those go on who hold less than the others do.

/** From here on a holder has to be below the mean. */
const NEARLY_ALL = 0.9;

export interface SharesOptions {
  readonly limit: number;
  readonly perHolder: number;
  /** Holders that may take all but what is left for those below the mean. */
  readonly unlimited?: string | ((holder: string) => boolean);
}

export type ShareRefusal = 'holder-full' | 'nearly-all-taken' | 'all-taken';

export class Shares {
  readonly limit: number;
  readonly perHolder: number;
  readonly #isUnlimited: (holder: string) => boolean;
  readonly #of = new Map<string, number>();
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
    return this.#of.get(holder) ?? 0;
  }

  /** What each holds. */
  held(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#of);
  }

  /** Why not; null: so many more may be taken. */
  refusal(holder: string, count = 1, perHolder = this.perHolder): ShareRefusal | null {
    const held = this.of(holder);
    if (held + count > perHolder && !this.#isUnlimited(holder)) return 'holder-full';
    if (this.#taken + count > this.limit) return 'all-taken';
    if (this.#taken < this.limit * NEARLY_ALL) return null;
    return held * this.#of.size < this.#taken ? null : 'nearly-all-taken';
  }

  /** Whoever takes owes as much to give(), with the same holder. */
  take(holder: string, count = 1): void {
    this.#of.set(holder, this.of(holder) + count);
    this.#taken += count;
  }

  give(holder: string, count = 1): void {
    const held = this.of(holder) - count;
    if (held < 0) return;
    if (held === 0) this.#of.delete(holder);
    else this.#of.set(holder, held);
    this.#taken -= count;
  }
}
