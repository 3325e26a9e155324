// Indexes of a group's members, to avoid loops over thousands of members: the healthy members, and the alert webhooks.

// The healthy members of a group in a dense array: adding, removing and picking take constant time for any number of members.

/** Number of random picks that may hit a tried member before the untried members are listed. */
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

  /** Removes a member; the last member takes its position. */
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

  /** Picks a random member that is not in `tried`, uniformly distributed. Returns null if no member is left. */
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

// The distinct alert webhooks of a group's members, counted as members join and leave: in a group of thousands, a loop over all members
// for every alert would be too slow.

export class AlertUrls {
  /** Number of members per URL. Null if no member has had a URL, as in most groups. */
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

  /** Returns the distinct URLs, including the given URL of a member that has just left. */
  with(url: string | null): readonly string[] {
    const urls = [...(this.#counts?.keys() ?? [])];
    return url === null || this.#counts?.has(url) === true ? urls : [...urls, url];
  }
}
