// What a group keeps of its members so that it need not go through them: those that may be picked, and where to send alerts.

// The members that may be picked, densely: adding, removing and picking cost the same however many there are.

/** Picks among those that were not tried yet: so often by chance, before all are gone through. */
const CHANCES = 4;

export class HealthySet<M> {
  readonly #dense: M[] = [];
  readonly #positions = new Map<M, number>();

  get size(): number {
    return this.#dense.length;
  }

  has(member: M): boolean {
    return this.#positions.has(member);
  }

  add(member: M): void {
    if (this.#positions.has(member)) return;
    this.#positions.set(member, this.#dense.length);
    this.#dense.push(member);
  }

  /** The last one takes the place of the one that goes. */
  delete(member: M): boolean {
    const position = this.#positions.get(member);
    if (position === undefined) return false;
    this.#positions.delete(member);
    const last = this.#dense.pop() as M;
    if (last !== member) {
      this.#dense[position] = last;
      this.#positions.set(last, position);
    }
    return true;
  }

  /** Uniform over those that are not in `tried`; null: there is none. */
  pick(random: () => number, tried: readonly M[] = NONE): M | null {
    const { length } = this.#dense;
    if (length === 0) return null;
    if (tried.length === 0) return this.#at(random, length);
    for (let chance = 0; chance < CHANCES; chance += 1) {
      const member = this.#at(random, length);
      if (!tried.includes(member)) return member;
    }
    const left = this.#dense.filter((member) => !tried.includes(member));
    return left.length === 0 ? null : (left[Math.floor(random() * left.length)] as M);
  }

  #at(random: () => number, length: number): M {
    return this.#dense[Math.floor(random() * length)] as M;
  }
}

const NONE: readonly never[] = [];

// The distinct alert URLs of a group's members. Counted as members come and go: a pool of thousands that flaps must not be
// looked through at each downward edge.

export class AlertUrls {
  /** null: nobody has one, as in most groups. */
  #counts: Map<string, number> | null = null;

  add(url: string | null): void {
    if (url === null) return;
    this.#counts ??= new Map();
    this.#counts.set(url, (this.#counts.get(url) ?? 0) + 1);
  }

  remove(url: string | null): void {
    if (url === null || this.#counts === null) return;
    const left = (this.#counts.get(url) ?? 0) - 1;
    if (left > 0) this.#counts.set(url, left);
    else this.#counts.delete(url);
  }

  /** With that of a member that has just left, if it had one. */
  with(url: string | null): readonly string[] {
    const urls = [...(this.#counts?.keys() ?? [])];
    return url === null || this.#counts?.has(url) === true ? urls : [...urls, url];
  }
}
