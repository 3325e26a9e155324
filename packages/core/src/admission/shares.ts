// A stock that many take from, so that one can use up its own part and nobody else's: each may hold so many, and when nearly all is taken
// only those go on who hold less than the others do.

/** From here on a holder has to be below the mean. */
const NEARLY_ALL = 0.9;

export interface SharesOptions {
  readonly limit: number;
  readonly perHolder: number;
}

export type ShareRefusal = 'holder-full' | 'nearly-all-taken' | 'all-taken';

export class Shares {
  readonly limit: number;
  readonly perHolder: number;
  readonly #of = new Map<string, number>();
  #taken = 0;

  constructor({ limit, perHolder }: SharesOptions) {
    this.limit = limit;
    this.perHolder = perHolder;
  }

  get taken(): number {
    return this.#taken;
  }

  of(holder: string): number {
    return this.#of.get(holder) ?? 0;
  }

  /** Why not; null: one more may be taken. `forFurther`: how many more will be wanted with it. */
  refusal(holder: string, forFurther = 0): ShareRefusal | null {
    const held = this.of(holder);
    if (held + 1 + forFurther > this.perHolder) return 'holder-full';
    if (this.#taken + 1 > this.limit) return 'all-taken';
    if (this.#taken < this.limit * NEARLY_ALL) return null;
    return held * this.#of.size < this.#taken ? null : 'nearly-all-taken';
  }

  /** Whoever takes owes one give() with the same holder. */
  take(holder: string): void {
    this.#of.set(holder, this.of(holder) + 1);
    this.#taken += 1;
  }

  give(holder: string): void {
    const held = this.of(holder) - 1;
    if (held < 0) return;
    if (held === 0) this.#of.delete(holder);
    else this.#of.set(holder, held);
    this.#taken -= 1;
  }
}
